//! A PostgreSQL of the tests' own: one private cluster for each process, one database for each test.
//!
//! `IDEM_TEST_POSTGRES_URL` names a server to use instead; its user must be allowed to create databases.

#![allow(clippy::unwrap_used, reason = "a helper of tests and benchmarks: its panic is their verdict")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions};

/// A running server.
#[derive(Debug)]
pub struct Cluster {
    admin: PgConnectOptions,
    /// `None` for a server that is somebody else's.
    #[allow(dead_code, reason = "its drop stops the server")]
    supervisor: Option<Supervised>,
}

/// A program under a shell that holds our pipe: when this process ends, however it ends, the pipe closes, and the shell
/// stops the program and removes its directory.
#[derive(Debug)]
pub struct Supervised {
    pipe: Option<ChildStdin>,
    shell: Child,
}

/// A database that is gone with the test.
#[derive(Debug)]
pub struct Database {
    name: String,
    cluster: &'static Cluster,
}

/// Waits for a line on its input or its end, then stops what it started; asks more than once, since the program may not
/// listen yet.
const SUPERVISOR: &str = r#"
trap '' INT TERM HUP PIPE
directory=$1; shift
"$@" </dev/null >"$directory/log" 2>&1 &
program=$!
echo "$program"
exec >/dev/null
read -r _ || :
(while kill -INT "$program" 2>/dev/null; do sleep 0.1; done) &
wait "$program"
rm -rf "$directory"
"#;

/// Makes a cluster and becomes its server.
const CLUSTER: &str = r#"
server=$1; data=$2; shift 2
"$0" --no-sync --auth=trust --username=postgres --encoding=UTF8 --locale=C -D "$data" &&
exec "$server" -D "$data" "$@"
"#;

/// Copies the cluster at a port and becomes its standby.
const STANDBY: &str = r#"
server=$1; data=$2; primary=$3; shift 3
"$0" --no-sync --host=127.0.0.1 --port="$primary" --username=postgres --checkpoint=fast --write-recovery-conf \
    -D "$data" &&
exec "$server" -D "$data" "$@"
"#;

impl Supervised {
    /// Starts a program as `user`; it logs to `log` in `directory`, which is removed with it.
    pub fn start(directory: &Path, user: Option<(u32, u32)>, program: &Path, arguments: &[String]) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", SUPERVISOR, "sh"]).arg(directory).arg(program).args(arguments).current_dir("/");
        // A group of its own: an interrupt at the terminal is for the tests, whose end then ends this.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        as_user(&mut command, user);
        let mut shell = command.spawn().expect("a shell");
        let mut started = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut started).unwrap();
        Self { pipe: shell.stdin.take(), shell }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _stopped_either_way = self.shell.wait();
    }
}

impl Cluster {
    /// The one that the tests of this process share. Statics are not dropped: the process's end closes the pipe.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| match std::env::var("IDEM_TEST_POSTGRES_URL") {
            Ok(url) => Self { admin: PgConnectOptions::from_str(&url).expect("a URL"), supervisor: None },
            // Records survive a crash of the server, and no test pulls a plug.
            Err(_) => Self::start(&["fsync=off"]),
        })
    }

    /// A server with these settings, for a test that must be alone.
    pub fn start(settings: &[&str]) -> Self {
        Self::boot(&[CLUSTER, &text(&program("initdb"))], &[], settings)
    }

    /// A standby that follows this server.
    pub fn standby(&self, settings: &[&str]) -> Self {
        let primary = self.admin.get_port().to_string();
        Self::boot(&[STANDBY, &text(&program("pg_basebackup"))], &[&primary], settings)
    }

    /// Runs a script under a maker of clusters, with the server, its directory, and `more` as arguments.
    fn boot(script: &[&str; 2], more: &[&str], settings: &[&str]) -> Self {
        for _ in 0..3 {
            let user = user();
            let directory = directory("idem-postgres", user);
            let data = directory.join("data");
            let port = free_port();
            let mut arguments = vec!["-c".to_owned()];
            arguments.extend(script.iter().map(|&part| part.to_owned()));
            arguments.extend([text(&program("postgres")), text(&data)]);
            arguments.extend(more.iter().map(|&more| more.to_owned()));
            arguments.extend(["-p".to_owned(), port.to_string()]);
            let socket = format!("unix_socket_directories={}", directory.display());
            let all = ["listen_addresses=127.0.0.1", "max_connections=300", "shared_buffers=64MB", socket.as_str()];
            for setting in all.iter().chain(settings) {
                arguments.extend(["-c".to_owned(), (*setting).to_owned()]);
            }
            let supervisor = Supervised::start(&directory, user, &program("sh"), &arguments);
            let admin = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(port).username("postgres");
            let admin = admin.database("postgres");
            if answers(&admin, &data) {
                return Self { admin, supervisor: Some(supervisor) };
            }
            // Another program took the port: with the next one, or not at all.
            eprintln!("{}", fs::read_to_string(directory.join("log")).unwrap_or_default());
        }
        panic!("the private PostgreSQL did not start");
    }

    /// How its administrator connects.
    pub fn options(&self) -> PgConnectOptions {
        self.admin.clone()
    }

    /// For the rest of the process, whose end stops the server.
    pub fn forever(self) -> &'static Self {
        Box::leak(Box::new(self))
    }

    /// A new, empty database.
    pub async fn database(&'static self) -> Database {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("idem_test_{}_{number}", std::process::id());
        self.run(format!("CREATE DATABASE {name}")).await;
        Database { name, cluster: self }
    }

    /// The one number that a statement gives its administrator.
    pub async fn number(&self, sql: impl Into<String>) -> i64 {
        let mut admin = self.admin.connect().await.expect("the test server");
        sqlx::query_scalar(AssertSqlSafe(sql.into())).fetch_one(&mut admin).await.unwrap()
    }

    /// Runs statements, as its administrator.
    pub async fn run(&self, sql: impl Into<String>) {
        let mut admin = self.admin.connect().await.expect("the test server");
        sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(&mut admin).await.unwrap();
    }
}

impl Database {
    /// How to connect to it.
    pub fn options(&self) -> PgConnectOptions {
        self.cluster.admin.clone().database(&self.name)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs statements, as an operator would.
    pub async fn run(&self, sql: impl Into<String>) {
        let mut connection = self.options().connect().await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(&mut connection).await.unwrap();
    }

    /// The one number that a statement gives.
    pub async fn number(&self, sql: impl Into<String>) -> i64 {
        let mut connection = self.options().connect().await.unwrap();
        sqlx::query_scalar(AssertSqlSafe(sql.into())).fetch_one(&mut connection).await.unwrap()
    }

    /// The one text that a statement gives.
    pub async fn text(&self, sql: impl Into<String>) -> String {
        let mut connection = self.options().connect().await.unwrap();
        sqlx::query_scalar(AssertSqlSafe(sql.into())).fetch_one(&mut connection).await.unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (cluster, sql) = (self.cluster, format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
        // A thread, since this may be dropped inside a runtime.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(cluster.run(sql));
        });
        let _a_panicking_test_is_told_already = dropped.join();
    }
}

/// A program of PostgreSQL, from PATH or where Debian keeps it, the newest first.
pub fn program(name: &str) -> PathBuf {
    let in_path =
        std::env::var_os("PATH").into_iter().flat_map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let mut debian: Vec<_> = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().collect();
    debian.sort_by_key(|version| version.file_name().to_string_lossy().parse::<u32>().unwrap_or(0));
    let debian = debian.into_iter().rev().map(|version| version.path().join("bin"));
    let debian = debian.chain([PathBuf::from("/usr/sbin")]);
    let found = in_path.chain(debian).map(|directory| directory.join(name)).find(|program| program.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "`{name}` is in neither PATH nor /usr/lib/postgresql/*/bin nor /usr/sbin. As root: apt-get update && \
             apt-get install --yes --no-install-recommends postgresql pgbouncer"
        )
    })
}

/// PostgreSQL refuses to run as root: then somebody else's user and group.
pub fn user() -> Option<(u32, u32)> {
    let id = Command::new("id").arg("-u").output().expect("id");
    if id.stdout != b"0\n" {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Some(ids("postgres").or_else(|| ids("nobody")).expect("a user that is not root: `postgres` or `nobody`"))
}

/// A new directory that belongs to that user.
pub fn directory(name: &str, user: Option<(u32, u32)>) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("{name}-{}-{number}", std::process::id()));
    fs::DirBuilder::new().mode(0o700).create(&directory).expect("a temporary directory");
    if let Some((user, group)) = user {
        chown(&directory, Some(user), Some(group)).unwrap();
    }
    directory
}

/// Writes a file that the user of [`directory`] may read.
pub fn write(file: &Path, text: &str) {
    fs::File::create(file).and_then(|mut file| file.write_all(text.as_bytes())).unwrap();
}

/// A port that nobody listens at, a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn as_user(command: &mut Command, user: Option<(u32, u32)>) {
    if let Some((user, group)) = user {
        command.uid(user).gid(group);
    }
}

/// Waits until the server answers, and is the one that was started: another may have taken the port meanwhile.
fn answers(admin: &PgConnectOptions, data: &Path) -> bool {
    let (admin, data) = (admin.clone(), text(data));
    let ask = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut connection = admin.connect().await?;
            sqlx::query_scalar::<_, String>("SHOW data_directory").fetch_one(&mut connection).await
        })
    };
    for _ in 0..400 {
        let ask = ask.clone();
        match std::thread::spawn(ask).join().expect("asking does not panic") {
            Ok(directory) => return directory == data,
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(50)),
        }
    }
    false
}
