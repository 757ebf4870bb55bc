//! `kill -9` at every suspension point of a payment, of the retry that takes over, and of the worker's round: on both
//! databases, for each of the three promises that a provider can make.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use idem_core::StatusName;
use idem_core::consumer::Delivery;
use payments::provider::Kind;
use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::die::{Dies, Moment, Point};
use crate::history::{History, What};
use crate::home::{Address, Home, Postgres, Sqlite};
use crate::invariants::answered;
use crate::service::{LEASE, Service, pay};
use crate::world::{KINDS, World, random, rounds};

/// What a process that is to die is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Errand {
    world: World,
    role: Role,
    at: Option<Point>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Role {
    Client { key: String },
    Worker,
}

/// The name of the variable that the errand stands in.
const ERRAND: &str = "IDEM_FAULTS_ERRAND";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the process that dies: the other tests start it"]
async fn the_process_that_dies() {
    let Ok(errand) = std::env::var(ERRAND) else { return };
    let errand: Errand = serde_json::from_str(&errand).unwrap();
    match errand.world.records {
        Address::Sqlite(_) => run::<Sqlite>(errand).await,
        Address::Postgres { .. } => run::<Postgres>(errand).await,
    }
}

async fn run<H: Home>(errand: Errand) {
    let service = Service::<H>::open(&errand.world).await.unwrap();
    let (ended, suspensions) = match &errand.role {
        Role::Client { key } => {
            let command = pay(key);
            let paid = Dies::at(errand.at, async { Delivery::of(&service.pay(key, &command).await) });
            paid.counted().await
        }
        Role::Worker => {
            let round = Dies::at(errand.at, async {
                service.engine.recover_once(100).await.unwrap();
                Delivery::Ack
            });
            round.counted().await
        }
    };
    println!("\nSURVIVED {suspensions} {ended:?}");
}

/// How a process ended.
#[derive(Debug)]
enum End {
    Killed,
    Survived { suspensions: u32, said: String },
}

/// Sends a process on its errand.
async fn send(errand: &Errand) -> End {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "kill::the_process_that_dies", "--ignored", "--nocapture"]);
    child.env(ERRAND, serde_json::to_string(errand).unwrap()).stdin(Stdio::null()).stderr(Stdio::inherit());
    let ended = timeout(Duration::from_secs(60), child.kill_on_drop(true).output()).await;
    let ended = ended.expect("it neither dies nor ends").unwrap();
    if ended.status.signal() == Some(9) {
        return End::Killed;
    }
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    let told = said.lines().find_map(|line| line.strip_prefix("SURVIVED ")).unwrap_or_else(|| panic!("{said}"));
    let (suspensions, said) = told.split_once(' ').unwrap();
    End::Survived { suspensions: suspensions.parse().unwrap(), said: said.to_owned() }
}

/// One database and one promise: everything that happens there.
struct Trial {
    name: String,
    world: World,
    history: History,
    random: fastrand::Rng,
    /// That many processes at once.
    room: Semaphore,
}

impl Trial {
    fn moment(&mut self, at: u32) -> Moment {
        if at.is_multiple_of(2) { Moment::Waking } else { Moment::Suspending { after: self.random.u64(..3000) } }
    }

    /// Sends processes to their deaths; how many have died.
    async fn kill(&self, errands: Vec<Errand>) -> u32 {
        let ends = join_all(errands.iter().map(async |errand| {
            let _place = self.room.acquire().await.unwrap();
            let key = match &errand.role {
                Role::Client { key } => key,
                Role::Worker => "the worker",
            };
            self.history.add(What::Invoke, key, format!("{:?}", errand.at));
            let end = send(errand).await;
            if let (End::Survived { suspensions, .. }, Some(at)) = (&end, errand.at) {
                // Whoever came to its point died there.
                assert!(*suspensions <= at.suspension, "{}: {at:?} was survived by {suspensions}", self.name);
            }
            let what = if matches!(end, End::Killed) { What::Info } else { What::Ok };
            self.history.add(what, key, format!("{end:?}"));
            end
        }))
        .await;
        u32::try_from(ends.iter().filter(|end| matches!(end, End::Killed)).count()).unwrap()
    }

    fn errand(&self, role: Role, at: Option<Point>) -> Errand {
        Errand { world: self.world.clone(), role, at }
    }
}

async fn trial<H: Home>(database: &str, records: Address, kind: Kind) -> u32 {
    let name = format!("{database}, {kind:?}");
    let random = random(&name);
    let folder = tempfile::tempdir().unwrap();
    let records = if let Address::Sqlite(_) = records { Address::file(folder.path()) } else { records };
    let mut trial = Trial {
        name: name.clone(),
        world: World { records, folder: folder.path().to_owned(), kind },
        history: History::new(),
        random,
        room: Semaphore::new(2),
    };
    let service = Arc::new(Service::<H>::open(&trial.world).await.unwrap());
    let End::Survived { suspensions, said } = send(&trial.errand(Role::Client { key: "unharmed".into() }, None)).await
    else {
        panic!("it died by itself")
    };
    assert_eq!(said, "Ack");
    let mut killed = 0;
    for round in 0..rounds() {
        // Each point twice, once on each side of the wait.
        let keys: Vec<String> =
            (0..2 * suspensions).map(|at| format!("{kind:?}-{round}-{at}").to_lowercase()).collect();
        let mut errands = Vec::new();
        for (at, key) in (0..).zip(&keys) {
            let point = Point { suspension: at / 2, moment: trial.moment(at) };
            errands.push(trial.errand(Role::Client { key: key.clone() }, Some(point)));
        }
        let first = trial.kill(errands).await;
        // A busy machine suspends one run more often than another.
        assert!(first > suspensions / 2, "{name}: of {} processes only {first} died", 2 * suspensions);
        sleep(LEASE).await;
        // Those that come to tidy up die as well: retries that take over, and workers.
        let mut errands = Vec::new();
        for (at, key) in (0..).zip(&keys) {
            let role = if at % 3 == 0 { Role::Worker } else { Role::Client { key: key.clone() } };
            let point = Point { suspension: trial.random.u32(..suspensions), moment: trial.moment(at) };
            errands.push(trial.errand(role, Some(point)));
        }
        let second = trial.kill(errands).await;
        sleep(LEASE).await;
        heal(&trial, &service, &keys).await;
        killed += first + second;
    }
    assert!(service.is_sound().await, "{name}: the database is damaged");
    println!("{name}: {killed} processes died at {suspensions} points");
    killed
}

/// No fault any more: half of the clients come back, the others leave it to the worker. Then everybody has an answer.
async fn heal<H: Home>(trial: &Trial, service: &Arc<Service<H>>, keys: &[String]) {
    let (come_back, stay_away) = keys.split_at(keys.len() / 2);
    if service.kind() == Kind::Neither {
        // What nobody can be asked about is put before a person by a worker, and by nobody else.
        service.engine.recover_once(100).await.unwrap();
    }
    join_all(come_back.iter().map(|key| answered(&trial.name, &trial.history, service, key))).await;
    let settle = async {
        loop {
            service.engine.recover_once(100).await.unwrap();
            let mut left = 0;
            for key in stay_away {
                let record = service.record(key).await;
                left += usize::from(record.is_some_and(|record| match record.status.name() {
                    StatusName::InProgress => true,
                    // Where nobody can be asked, a person decides.
                    StatusName::Unknown => service.kind() != Kind::Neither,
                    _ => false,
                }));
            }
            if left == 0 {
                break;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(60), settle).await.expect("the worker leaves nothing unsettled");
    join_all(stay_away.iter().map(|key| answered(&trial.name, &trial.history, service, key))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_dies_wherever_nothing_is_paid_twice_and_everybody_gets_an_answer_on_sqlite() {
    let trials = KINDS.map(async |kind| trial::<Sqlite>("SQLite", Address::Sqlite("".into()), kind).await);
    let killed: u32 = join_all(trials).await.iter().sum();
    println!("SQLite: {killed} processes killed");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_dies_wherever_nothing_is_paid_twice_and_everybody_gets_an_answer_on_postgresql() {
    let server = idem_cluster::Cluster::shared();
    let trials = KINDS.map(async |kind| {
        let database = server.database().await;
        trial::<Postgres>("PostgreSQL", Address::database(&database), kind).await
    });
    let killed: u32 = join_all(trials).await.iter().sum();
    println!("PostgreSQL: {killed} processes killed");
}
