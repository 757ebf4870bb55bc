//! Encrypted connections, and what is said where they do not come about.

use std::error::Error as _;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use idem_cluster::{Cluster, Database, user};
use idem_core::store::{Claiming, Owning};
use idem_sqlx::{PgOptions, PgStore};
use tempfile::TempDir;

use super::{LONG, cause, inserts, new_claim, ownership};

#[tokio::test]
async fn every_connection_is_encrypted() {
    let server = Server::start().await;
    let database = server.cluster.database().await;
    let store = PgStore::open(server.options(&database, "localhost", "require")).await.unwrap();
    let claim = new_claim("key-1", LONG);
    assert!(inserts(&store, &claim).await);
    let mut pulse = store.pulse().unwrap();
    let live = vec![(ownership(&claim), LONG)];
    let (beaten, pulse) = std::thread::spawn(move || (pulse.beat(&live), pulse)).join().unwrap();
    assert_eq!(beaten.unwrap(), [true]);
    let connections = |encrypted: bool| {
        format!(
            "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
            WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND s.ssl = {encrypted}"
        )
    };
    // The store's and its heartbeat's.
    assert!(database.number(connections(true)).await >= 2);
    assert_eq!(database.number(connections(false)).await, 0);
    // Its runtime must not end inside of another one.
    std::thread::spawn(move || drop(pulse)).join().unwrap();
}

#[tokio::test]
async fn a_certificate_is_held_to_its_root_and_its_host() {
    let server = Server::start().await;
    let database = server.cluster.database().await;
    let verified =
        |host| server.options(&database, host, &format!("verify-full&sslrootcert={}", server.certificate().display()));
    let store = PgStore::open(verified("localhost")).await.unwrap();
    assert!(inserts(&store, &new_claim("key-1", LONG)).await);
    // The certificate names no address; nobody has signed it but itself.
    for refused in [verified("127.0.0.1"), server.options(&database, "localhost", "verify-full")] {
        let error = PgStore::connect(refused).await.unwrap_err();
        assert_eq!(error.code(), "DATABASE_WITHOUT_TLS", "{error:?}");
        assert!(error.source().unwrap().to_string().contains("certificate"), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_told_so() {
    let cluster = Cluster::start(&["fsync=off"]).forever();
    let database = cluster.database().await;
    let options = database.options().ssl_mode(sqlx::postgres::PgSslMode::Require);
    for opened in [PgStore::open(options.clone()).await, PgStore::connect(options).await] {
        let error = opened.unwrap_err();
        assert_eq!(error.code(), "DATABASE_WITHOUT_TLS");
        assert!(error.to_string().contains("sslmode"), "{error}");
        assert!(error.source().unwrap().to_string().contains("does not support TLS"), "{error:?}");
    }
}

/// A server that went back to plain text is not claimed from, and that is no matter of trying again.
#[tokio::test]
async fn a_server_that_lost_its_tls_is_told_so() {
    let server = Server::start().await;
    let database = server.cluster.database().await;
    let store = PgStore::open(server.options(&database, "localhost", "require")).await.unwrap();
    server.turn("off").await;
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = ";
    database.run(format!("{cut}'{}'", database.name())).await;
    // The first answer may be of the connection that was cut.
    let claim = new_claim("key-1", LONG);
    let _cut = store.claim(&claim).await;
    let error = store.claim(&claim).await.unwrap_err();
    assert_eq!((error.code(), cause(&error)), ("STORE_UNUSABLE", "DATABASE_WITHOUT_TLS"));
}

/// A server whose certificate names `localhost` and is signed by itself.
struct Server {
    cluster: &'static Cluster,
    folder: TempDir,
}

impl Server {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = certify(folder.path());
        // Not by the command line, which a test could not take back.
        let cluster = Cluster::start(&["fsync=off"]).forever();
        cluster.run(format!("ALTER SYSTEM SET ssl_cert_file = '{}'", certificate.display())).await;
        cluster.run(format!("ALTER SYSTEM SET ssl_key_file = '{}'", key.display())).await;
        let server = Self { cluster, folder };
        server.turn("on").await;
        server
    }

    /// Turns TLS on or off for connections that come from now on.
    async fn turn(&self, to: &str) {
        self.cluster.run(format!("ALTER SYSTEM SET ssl = {to}")).await;
        self.cluster.run("SELECT pg_reload_conf()").await;
        while self.cluster.number(format!("SELECT (current_setting('ssl') = '{to}')::integer::bigint")).await == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn certificate(&self) -> PathBuf {
        self.folder.path().join("server.crt")
    }

    /// As it stands in an application's configuration.
    fn options(&self, database: &Database, host: &str, mode: &str) -> PgOptions {
        let server = database.options();
        let (user, port, name) = (server.get_username(), server.get_port(), database.name());
        PgOptions::new(&format!("postgres://{user}@{host}:{port}/{name}?sslmode={mode}")).unwrap()
    }
}

/// Certificate and key, for the server's user alone.
fn certify(folder: &Path) -> [PathBuf; 2] {
    let [configuration, certificate, key] = ["openssl.cnf", "server.crt", "server.key"].map(|name| folder.join(name));
    let text = "[req]\nprompt = no\ndistinguished_name = name\nx509_extensions = server\n[name]\nCN = localhost\n\
                [server]\nsubjectAltName = DNS:localhost\nbasicConstraints = critical,CA:FALSE\n";
    std::fs::write(&configuration, text).unwrap();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args([&"-config".into(), &configuration, &"-keyout".into(), &key, &"-out".into(), &certificate])
        .output()
        .expect("`openssl` is not in PATH. As root: apt-get update && apt-get install --yes --no-install-recommends openssl");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    if let Some((user, group)) = user() {
        for path in [folder, &certificate, &key] {
            chown(path, Some(user), Some(group)).unwrap();
        }
    }
    [certificate, key]
}
