using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Charts;

/// <summary>
/// The colour of each way, the same in every chart. All of them are readable on white and on black; this library's are the warm ones.
/// </summary>
internal static class Palette
{
    private const string Own = "#e8590c";
    private const string OwnOther = "#e0930a";

    internal static string ColourOf(Origin origin) => origin switch
    {
        Origin.Own => Own,
        Origin.ByHand => "#4d8df5",
        Origin.Net => "#7f8a96",
        _ => "#a07a2c",
    };

    internal static string ColourOf(string name) => name switch
    {
        "FilePipeReader" or "FilePipeWriter" or "PooledMemoryStream" or "PooledMemoryStream to FilePipeWriter" => Own,
        _ when Origins.IsOwn(name) => OwnOther,
        "RecyclableMemoryStream" or "RecyclableMemoryStream with BinaryWriter" or "RecyclableMemoryStream to FileStream" => "#12a0ac",
        "MemoryStream" or "MemoryStream with BinaryWriter" or "MemoryStream to FileStream" or "FileStreamSync"
            or "StreamReader.ReadLineAsync" => "#7f8a96",
        "FileStreamSync, rented buffer" => "#4d8df5",
        "FileStreamAsync" => "#9a6bef",
        "PipeReader.Create" or "PipeWriter.Create" => "#d355a0",
        "PipeReader.Create, 64 KiB" => "#a8508f",
        "FileStream to Pipe" => "#2f9e68",
        "RandomAccess.Read" or "RandomAccess.Write" => "#12a0ac",
        "RandomAccess.ReadAsync" or "RandomAccess.WriteAsync" => "#8b8f3c",
        "pread(2)" or "pwrite(2)" or "already in memory" or "a thread each" => "#b0705a",
        "FileStreamSync, CreateNew" => "#4d8df5",
        "StreamConnection.GetReader" => "#5c7cfa",
        "MemoryMappedPipeReader" => "#74a312",
        "Nerdbank UsePipeReader" or "Nerdbank UsePipeWriter" => "#a07a2c",
        "Nerdbank UseStrictPipeReader" => "#c4566b",
        _ => "#6b7bd0",
    };
}
