//! A PostgreSQL of the bench's own.

use idem_cluster::{Cluster, Database};

/// A database on a server that ends with this process. As it is for an application: every commit is on the disk. The
/// server's directory is a temporary one, so `TMPDIR` names the disk.
pub(crate) async fn database() -> Database {
    Cluster::start(&SETTINGS).forever().database().await
}

const SETTINGS: [&str; 5] =
    ["fsync=on", "synchronous_commit=on", "shared_buffers=256MB", "max_wal_size=4GB", "track_activity_query_size=32kB"];
