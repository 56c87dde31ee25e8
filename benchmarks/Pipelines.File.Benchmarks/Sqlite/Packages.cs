namespace FilePipelinesBenchmarks.Reporting;

internal static partial class Packages
{
    static partial void AddSqlite(List<Type> types) => types.Add(typeof(Microsoft.Data.Sqlite.SqliteConnection));
}
