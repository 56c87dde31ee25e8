using System.Globalization;
using FilePipelines.Devices.Child;

// crash FOLDER SEED   checks what earlier runs have left in the folder, says "checked", and goes on until it is killed
// check FOLDER        checks it
// sweep FOLDER        has its system calls answered by the parent, and performs the operations that it reads from standard input
// Exit status: 0 as asked, 4 something is wrong (said on stderr).
try
{
    return args[0] switch
    {
        "crash" => await CrashProgram.RunAsync(args[1], int.Parse(args[2], CultureInfo.InvariantCulture)),
        "check" => await CrashProgram.CheckAsync(args[1]),
        "sweep" => await Sweep.RunAsync(args[1]),
        _ => 2,
    };
}
catch (WrongStateException e)
{
    Console.Error.WriteLine(e);
    return 4;
}
