//! An SQLite file for each side, in one directory.

use std::cell::RefCell;
use std::path::Path;
use std::time::{Instant, SystemTime};

use idem_sqlx::SqliteStore;
use rusqlite::{Connection, params};

use super::{
    ANSWER, CALL, DAY, Failed, Keys, LEASE, OPERATION, OUTCOME, REPLAYED, Rates, TENANT, TURN, Work, fill_up, in_turns,
    turn,
};

pub(super) async fn compare(work: Work, callers: usize, rounds: usize) -> Result<Rates, Failed> {
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(folder.path().join("idem.db")).await?;
    let file = folder.path().join("plain.db");
    SqliteStore::migrate(&file).await?;
    let plain = RefCell::new(Plain::open(&file)?);
    if work == Work::Replays {
        fill_up(&store).await?;
        let mut plain = plain.borrow_mut();
        for number in 0..REPLAYED {
            plain.insert(&format!("replay-{number}"))?;
            plain.complete(&format!("replay-{number}"))?;
        }
    }
    let rates =
        in_turns(rounds, async || turn(&store, work, callers).await, async || plain.borrow_mut().turn(work)).await?;
    store.close().await;
    Ok(rates)
}

/// One connection, used by one thread: SQLite has one writer, and more would only meet its lock.
struct Plain(Connection);

impl Plain {
    fn open(file: &Path) -> Result<Self, Failed> {
        let connection = Connection::open(file)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(Self(connection))
    }

    fn turn(&mut self, work: Work) -> Result<f64, Failed> {
        let mut keys = Keys::next().of(0);
        let start = Instant::now();
        let mut done = 0_u64;
        while start.elapsed() < TURN {
            if work == Work::Replays && !done.is_multiple_of(10) {
                self.read(&format!("replay-{}", fastrand::u64(..REPLAYED)))?;
            } else {
                let key = keys.next_key();
                self.insert(&key)?;
                match work {
                    Work::Single | Work::Replays => {}
                    Work::Cycle => self.complete(&key)?,
                    Work::Payment => {
                        self.announce(&key)?;
                        self.complete_with_call(&key)?;
                    }
                }
            }
            done += 1;
        }
        Ok(done as f64 / start.elapsed().as_secs_f64())
    }

    fn insert(&mut self, key: &str) -> Result<(), Failed> {
        let now = millis()?;
        let lease = i64::try_from(LEASE.as_millis())?;
        let values = params![TENANT, OPERATION, key, [7_u8; 32], [1_u8; 16], now + lease, now];
        self.one(INSERT, values)
    }

    fn complete(&mut self, key: &str) -> Result<(), Failed> {
        let now = millis()?;
        let day = i64::try_from(DAY.as_millis())?;
        self.one(COMPLETE, params![TENANT, OPERATION, key, vec![b'x'; ANSWER], now, now + day, now + 31 * day])
    }

    fn announce(&mut self, key: &str) -> Result<(), Failed> {
        let now = millis()?;
        let day = i64::try_from(DAY.as_millis())?;
        self.together(|plain| {
            plain.one(OPEN, params![TENANT, OPERATION, key, CALL, day, format!("{CALL}_{key}"), now])?;
            plain.one(ANNOUNCED, params![TENANT, OPERATION, key, now])
        })
    }

    fn complete_with_call(&mut self, key: &str) -> Result<(), Failed> {
        let now = millis()?;
        self.together(|plain| {
            plain.one(CLOSE, params![TENANT, OPERATION, key, CALL, OUTCOME, now])?;
            plain.complete(key)
        })
    }

    /// Writes that take effect together, with one sync.
    fn together(&mut self, writes: impl FnOnce(&mut Self) -> Result<(), Failed>) -> Result<(), Failed> {
        self.0.execute_batch("BEGIN IMMEDIATE")?;
        writes(self)?;
        Ok(self.0.execute_batch("COMMIT")?)
    }

    fn read(&mut self, key: &str) -> Result<Vec<u8>, Failed> {
        Ok(self.0.prepare_cached(READ)?.query_row(params![TENANT, OPERATION, key], |row| row.get(4))?)
    }

    fn one(&mut self, sql: &str, values: impl rusqlite::Params) -> Result<(), Failed> {
        match self.0.prepare_cached(sql)?.execute(values)? {
            1 => Ok(()),
            rows => Err(format!("{rows} rows were written").into()),
        }
    }
}

fn millis() -> Result<i64, Failed> {
    Ok(i64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis())?)
}

const INSERT: &str = "INSERT INTO idempotency_requests (
    tenant_id, operation_name, idempotency_key, request_hash, hash_form, hash_version, status, fence, owner_token, revision,
    locked_until, attempts, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, 1, 1, 'in_progress', 1, ?5, 1, ?6, 1, ?7, ?7) ON CONFLICT DO NOTHING";

const COMPLETE: &str = "UPDATE idempotency_requests SET
    status = 'completed', response_status = 201, response_headers = X'', response_body = ?4, finished_at = ?5,
    expires_at = ?6, purge_at = ?7, locked_until = NULL, revision = revision + 1, updated_at = ?5
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3 AND fence = 1 AND status = 'in_progress'";

const OPEN: &str = "INSERT INTO idempotency_calls (
    tenant_id, operation_name, idempotency_key, call_name, class, class_span, downstream_key, state, fence, opened_at)
VALUES (?1, ?2, ?3, ?4, 'dedupes', ?5, ?6, 'open', 1, ?7)";

const ANNOUNCED: &str = "UPDATE idempotency_requests SET
    first_call_at = ?4, revision = revision + 1, updated_at = ?4
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3 AND fence = 1 AND status = 'in_progress'";

const CLOSE: &str = "UPDATE idempotency_calls SET state = 'applied', outcome = ?5, closed_at = ?6
WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3 AND call_name = ?4 AND state = 'open'";

const READ: &str = "SELECT status, request_hash, response_status, response_headers, response_body
FROM idempotency_requests WHERE tenant_id = ?1 AND operation_name = ?2 AND idempotency_key = ?3";
