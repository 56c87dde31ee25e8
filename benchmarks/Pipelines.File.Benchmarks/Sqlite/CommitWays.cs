using Microsoft.Data.Sqlite;

namespace FilePipelinesBenchmarks.Durable;

/// <content>SQLite in WAL mode, with a sync at every commit, a connection for each producer. Only with -p:Sqlite=true.</content>
internal static partial class CommitWays
{
    static partial void AddSqlite(List<Func<CommitWay>> ways) => ways.Add(() => new SqliteCommits());

    private sealed class SqliteCommits() : CommitWay("SQLite, WAL, synchronous=FULL", CommitFile.Growing)
    {
        private (SqliteConnection Connection, SqliteCommand Insert)[] _producers = [];

        internal override Task OpenAsync(string path, int producers)
        {
            _producers = [.. Enumerable.Range(0, producers).Select(_ =>
            {
                SqliteConnection connection = new($"Data Source={path};Pooling=False;Default Timeout=60");
                connection.Open();
                foreach (string sql in (string[])["PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL",
                    "CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY, content BLOB)"])
                {
                    using SqliteCommand command = connection.CreateCommand();
                    command.CommandText = sql;
                    _ = command.ExecuteNonQuery();
                }

                SqliteCommand insert = connection.CreateCommand();
                insert.CommandText = "INSERT INTO records (content) VALUES ($content)";
                insert.Parameters.Add("$content", SqliteType.Blob);
                insert.Prepare();
                return (connection, insert);
            })];
            return Task.CompletedTask;
        }

        internal override ValueTask CommitAsync(int producer, byte[] record)
        {
            SqliteCommand insert = _producers[producer].Insert;
            insert.Parameters[0].Value = record;
            _ = insert.ExecuteNonQuery();
            return default;
        }

        public override void Dispose()
        {
            foreach ((SqliteConnection connection, SqliteCommand insert) in _producers)
            {
                insert.Dispose();
                connection.Dispose();
            }
        }
    }
}
