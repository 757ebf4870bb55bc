//! The one writer: a thread that owns the connection and takes writes from a queue, in order.
//!
//! Callers wait for an answer and may go away: a future dropped at any point drops its place at the queue or its
//! interest in the answer, never a transaction half-way. (On a connection that callers share, a `begin` cancelled in
//! flight can leave the connection inside a transaction; the next insert then reports its row and is never
//! committed: two owners.) The thread is not one of the application's runtime, which handlers may block or shut down.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use idem_core::store::{
    Answered, AuditEntry, Claimed, Evidence, Fenced, Finish, Guarded, NewClaim, Seen, Step, SweepOrder, Swept,
    TakeOver, Tended, Verdicted,
};
use idem_core::{Ownership, Scope};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tokio::sync::{mpsc, oneshot};

use crate::error::{Error, Trouble};
use crate::sqlite::options::SqliteOptions;
use crate::sqlite::{keep, recover, sweep, write};

/// The queue's other end. When the last clone is gone, the writer ends, after what is queued.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
    patience: Duration,
}

/// A write and who waits for it.
pub(super) enum Job {
    Claim(NewClaim, Waiting<Option<Claimed>>),
    TakeOver(TakeOver, Waiting<Guarded>),
    Step(Ownership, Step, Waiting<Fenced>),
    Finish(Ownership, Finish, Waiting<Fenced>),
    Tend(Seen, Tended, Waiting<Guarded>),
    TakeToAsk(TakeOver, Waiting<Guarded>),
    Answer(Ownership, Answered, Waiting<Fenced>),
    Resolve(Seen, Verdicted, AuditEntry, Waiting<Guarded>),
    Learn(Evidence, Waiting<Option<Scope>>),
    Sweep(SweepOrder, Waiting<Swept>),
    Expire(u32, Waiting<Swept>),
    AddContract(String, u32, u32, String, Waiting<bool>),
    SettleSetting(String, String, Waiting<String>),
    SignOfLife(Waiting<()>),
    Audit(AuditEntry, Waiting<()>),
    Errand(Box<dyn Errand>),
    Close(Waiting<()>),
}

/// A write that brings its own work.
pub(super) trait Errand: Send {
    fn run<'d>(self: Box<Self>, desk: &'d mut Desk) -> LocalBoxFuture<'d, ()>;
}

/// A write whose work may ask whether somebody waits for it.
struct Waited<T, W> {
    work: W,
    waiting: Waiting<T>,
}

impl<T, W> Errand for Waited<T, W>
where
    T: Send + 'static,
    W: AsyncFnOnce(&mut SqliteConnection, Awaited<'_>) -> Result<T, Trouble> + Send + 'static,
{
    fn run<'d>(self: Box<Self>, desk: &'d mut Desk) -> LocalBoxFuture<'d, ()> {
        let Self { work, waiting } = *self;
        Box::pin(async move {
            let awaited = || !waiting.is_closed();
            let written = desk.transaction(async |tx| work(tx, Awaited(&awaited)).await).await;
            desk.answer(waiting, written).await;
        })
    }
}

/// Whether somebody waits for what is written.
#[derive(Clone, Copy)]
pub(super) struct Awaited<'w>(&'w dyn Fn() -> bool);

impl Awaited<'_> {
    pub(super) fn holds(self) -> bool {
        self.0()
    }
}

type Waiting<T> = oneshot::Sender<Result<T, Trouble>>;

impl Writer {
    /// Starts the thread on a connection that is ready.
    pub(super) fn start(options: SqliteOptions, file: PathBuf, connection: SqliteConnection) -> Result<Self, Error> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let patience = options.patience();
        let desk = Desk { options, identity: identity(&file), file, connection: Some(connection) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::NoThread)?;
        std::thread::Builder::new()
            .name("idem-sqlite-writer".into())
            .spawn(move || runtime.block_on(desk.serve(queue)))
            .map_err(Error::NoThread)?;
        Ok(Self { jobs, patience })
    }

    /// Queues a write and waits for its answer, for twice the busy time-out at most: behind a locked database each write
    /// waits that time-out, and the last of many must not wait for all of them. One that was given up may still be made.
    pub(super) async fn write<T>(&self, job: impl FnOnce(Waiting<T>) -> Job) -> Result<T, Trouble> {
        let (waiting, answer) = oneshot::channel();
        let written = async {
            self.jobs.send(job(waiting)).await.map_err(|_| Error::Closed)?;
            answer.await.unwrap_or_else(|_| Err(Error::Closed.into()))
        };
        // Well above what the write itself may wait, so that a lock is called one.
        let patience = (self.patience * 2).max(Duration::from_secs(1));
        tokio::time::timeout(patience, written).await.unwrap_or_else(|_| Err(Error::Busy.into()))
    }

    /// [`Self::write`] with work that no job has a name for.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Trouble> {
        self.run_awaited(async move |tx: &mut SqliteConnection, _: Awaited<'_>| work(tx).await).await
    }

    /// The same with work that is another one where nobody waits for it.
    pub(super) async fn run_awaited<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(&mut SqliteConnection, Awaited<'_>) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Trouble> {
        self.write(|waiting| Job::Errand(Box::new(Waited { work, waiting }))).await
    }
}

/// Where the writer sits.
pub(super) struct Desk {
    options: SqliteOptions,
    file: PathBuf,
    /// What the file was when it was opened.
    identity: Option<Identity>,
    /// `None` after a failure, until the next write opens another.
    connection: Option<SqliteConnection>,
}

impl Desk {
    async fn serve(mut self, mut queue: mpsc::Receiver<Job>) {
        while let Some(job) = queue.recv().await {
            match job {
                // A claim, and an announcement, that nobody waits for any more is better not made.
                Job::Claim(_, waiting) if waiting.is_closed() => {}
                Job::TakeOver(_, waiting) if waiting.is_closed() => {}
                Job::Step(_, _, waiting) if waiting.is_closed() => {}
                Job::TakeToAsk(_, waiting) if waiting.is_closed() => {}
                Job::Claim(claim, waiting) => self.write(waiting, async |tx| write::claim(tx, &claim).await).await,
                Job::TakeOver(take, waiting) => {
                    self.write(waiting, async |tx| write::take_over(tx, &take).await).await;
                }
                Job::Step(owner, step, waiting) => {
                    self.write(waiting, async |tx| write::step(tx, &owner, &step).await).await;
                }
                // How work ended is stored whether anybody waits for it or not.
                Job::Finish(owner, finish, waiting) => {
                    self.write(waiting, async |tx| write::finish(tx, &owner, &finish).await).await;
                }
                Job::Tend(seen, to, waiting) => {
                    self.write(waiting, async |tx| recover::tend(tx, &seen, &to).await).await;
                }
                Job::TakeToAsk(take, waiting) => {
                    self.write(waiting, async |tx| recover::take_to_ask(tx, &take).await).await;
                }
                Job::Answer(owner, answered, waiting) => {
                    self.write(waiting, async |tx| recover::answer(tx, &owner, &answered).await).await;
                }
                Job::Resolve(seen, verdict, audit, waiting) => {
                    self.write(waiting, async |tx| recover::resolve(tx, &seen, &verdict, &audit).await).await;
                }
                Job::Learn(evidence, waiting) => {
                    self.write(waiting, async |tx| recover::learn(tx, &evidence).await).await;
                }
                Job::Sweep(order, waiting) => self.write(waiting, async |tx| sweep::sweep(tx, order).await).await,
                Job::Expire(limit, waiting) => self.write(waiting, async |tx| sweep::expire(tx, limit).await).await,
                Job::AddContract(operation, version, number, text, waiting) => {
                    let add = async |tx: &mut _| keep::add_contract(tx, &operation, version, number, &text).await;
                    self.write(waiting, add).await;
                }
                Job::SettleSetting(name, value, waiting) => {
                    self.write(waiting, async |tx| keep::settle_setting(tx, &name, &value).await).await;
                }
                Job::SignOfLife(waiting) => self.write(waiting, async |tx| keep::sign_of_life(tx).await).await,
                Job::Audit(entry, waiting) => self.write(waiting, async |tx| keep::audit(tx, &entry).await).await,
                Job::Errand(errand) => errand.run(&mut self).await,
                Job::Close(waiting) => {
                    queue.close();
                    self.hang_up().await;
                    let _nobody_waits = waiting.send(Ok(()));
                }
            }
        }
        self.hang_up().await;
    }

    async fn write<T>(
        &mut self,
        waiting: Waiting<T>,
        work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T, Trouble>,
    ) {
        let written = self.transaction(work).await;
        self.answer(waiting, written).await;
    }

    async fn answer<T>(&mut self, waiting: Waiting<T>, written: Result<T, Trouble>) {
        if written.is_err() {
            // After some errors SQLite has rolled back by itself, and sqlx has not noticed; after others the
            // connection is gone. A new one knows nothing of either, and what was not committed is no more.
            self.hang_up().await;
        }
        let _nobody_waits = waiting.send(written);
    }

    async fn transaction<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        if identity(&self.file) != self.identity {
            return Err(Error::Replaced(self.file.clone()).into());
        }
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(self.options.writing(&self.file).connect().await?),
        };
        // The lock first: a transaction that reads and then writes is refused at once when another has written in
        // between, whatever the busy time-out.
        let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
        let answer = work(&mut tx).await?;
        tx.commit().await?;
        Ok(answer)
    }

    async fn hang_up(&mut self) {
        if let Some(connection) = self.connection.take() {
            let _closed_either_way = connection.close().await;
        }
    }
}

/// How many writes may wait; more callers wait to be let in, in the order they came.
const QUEUE: usize = 1024;

/// Device and inode: a file of the same name may be another.
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(file: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;

    std::fs::metadata(file).ok().map(|file| (file.dev(), file.ino()))
}

/// Elsewhere an open file can be neither deleted nor replaced.
#[cfg(not(unix))]
fn identity(_: &Path) -> Option<Identity> {
    None
}
