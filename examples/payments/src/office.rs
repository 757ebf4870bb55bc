//! Another service, which hears of payments: its journal gets an entry, the customer a receipt by e-mail. Every message may
//! come again, and has one effect on each of both.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use idem_core::consumer::Delivery;
use idem_core::{CallClass, Claim, DownstreamKey, Engine, IdempotentCommand, Reply, Tenant};
use idem_sqlx::SqliteStore;
use idem_sqlx::inbox::{self, Consumer};
use idem_sqlx::outbox::{Event, PublishError};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqliteSynchronous};

use crate::events::PaymentPaid;
use crate::provider::ProviderError;
use crate::service::StartError;

/// The office's own rows, its mail, and what it knows of messages.
#[derive(Debug)]
pub struct Office {
    pool: SqlitePool,
    journal: Consumer,
    engine: Engine,
    mail: MailServer,
}

/// Send a customer the receipt of a payment.
#[derive(Debug, Clone, IdempotentCommand)]
#[idem(operation = "send_receipt", version = 1)]
pub struct SendReceipt {
    /// Of which payment.
    #[idem(verbatim)]
    pub payment: String,
    /// To whom.
    #[idem(verbatim)]
    pub account: String,
    /// What it says.
    #[idem(verbatim)]
    pub text: String,
}

/// What has become of the messages about a payment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Heard {
    /// How many deliveries the office is done with.
    pub deliveries: i64,
    /// Its entries in the journal.
    pub entries: i64,
    /// Its e-mails in the office's rows.
    pub emails: i64,
    /// How often the mail server was asked to send one, under whatever key.
    pub notifications: usize,
}

impl Office {
    /// Opens the office's file.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn open(file: &Path) -> Result<Self, StartError> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(5));
        let pool = SqlitePool::connect_with(options).await?;
        sqlx::raw_sql(TABLES).execute(&pool).await?;
        let engine = Engine::builder(SqliteStore::beside(&pool).await?)
            .namespace("office")
            .call::<SendReceipt>("send", CallClass::Dedupes { retention: Duration::from_secs(24 * 60 * 60) })
            .build()?;
        engine.register::<SendReceipt>().await?;
        let journal = Consumer::new("journal").expect("it is a name");
        Ok(Self { pool, journal, engine, mail: MailServer::default() })
    }

    /// Takes one delivery of a message.
    ///
    /// # Errors
    /// [`PublishError`]: it is to be delivered again, or by a person.
    pub async fn hear(&self, event: &Event) -> Result<(), PublishError> {
        let paid: PaymentPaid = match (event.kind.as_str(), event.version) {
            ("payment_paid", 1) => serde_json::from_slice(&event.payload).map_err(PublishError::refused)?,
            (kind, version) => return Err(PublishError::refused(format!("{kind} {version} is not known here"))),
        };
        self.enter(event, &paid).await?;
        self.send_receipt(event, &paid).await?;
        // At the end: who sees the last delivery counted sees all that came of it.
        let counted = sqlx::query("INSERT INTO deliveries (payment) VALUES (?)").bind(&paid.payment);
        counted.execute(&self.pool).await.map_err(PublishError::retry)?;
        Ok(())
    }

    /// An effect in the office's own rows: mark and entry in one transaction.
    async fn enter(&self, event: &Event, paid: &PaymentPaid) -> Result<(), PublishError> {
        let tx = self.pool.begin_with("BEGIN IMMEDIATE").await.map_err(PublishError::retry)?;
        let entered = inbox::once(tx, &self.journal, &event.id, |mut tx| async move {
            let entry = sqlx::query("INSERT INTO journal VALUES (?, ?, ?)");
            entry.bind(&paid.payment).bind(&paid.amount).bind(&paid.currency).execute(&mut **tx).await?;
            Ok((tx, ()))
        });
        entered.await.map_err(PublishError::retry)?;
        Ok(())
    }

    /// An effect outside: announced before it leaves, and never made twice.
    async fn send_receipt(&self, event: &Event, paid: &PaymentPaid) -> Result<(), PublishError> {
        let (tenant, key) = (Tenant::new("payments"), event.id.parse());
        let (tenant, key) = (tenant.map_err(PublishError::refused)?, key.map_err(PublishError::refused)?);
        let text = format!("We have received {} {}.", paid.amount, paid.currency);
        let receipt = SendReceipt { payment: paid.payment.clone(), account: paid.account.clone(), text };
        let (command, receipt) = (receipt.clone(), &receipt);
        let work = |claim: Claim| async move {
            let email = sqlx::query("INSERT INTO emails VALUES (?, ?, ?) ON CONFLICT (payment) DO NOTHING");
            email.bind(&receipt.payment).bind(&receipt.account).bind(&receipt.text).execute(&self.pool).await?;
            claim.call("send", |key| self.mail.send(key, &receipt.payment)).await?;
            Ok(Reply::status(204))
        };
        match Delivery::of(&self.engine.run(&tenant, &key, &command, work).await) {
            Delivery::Ack => Ok(()),
            Delivery::Later(_) => Err(PublishError::retry("the receipt is not sent yet")),
            Delivery::DeadLetter(reason) => Err(PublishError::refused(reason.code())),
        }
    }

    /// What has become of the messages about a payment.
    ///
    /// # Errors
    /// The database's.
    pub async fn heard(&self, payment: &str) -> Result<Heard, sqlx::Error> {
        let (deliveries, entries, emails) = sqlx::query_as(HEARD).bind(payment).fetch_one(&self.pool).await?;
        let notifications = self.mail.asked(payment);
        Ok(Heard { deliveries, entries, emails, notifications })
    }
}

/// The mail server: it remembers what it was asked for, each time.
#[derive(Debug, Default)]
struct MailServer(Mutex<Vec<(DownstreamKey, String)>>);

impl MailServer {
    async fn send(&self, key: DownstreamKey, payment: &str) -> Result<(), ProviderError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((key, payment.to_owned()));
        Ok(())
    }

    fn asked(&self, payment: &str) -> usize {
        let asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().filter(|(_, of)| of == payment).count()
    }
}

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS journal (payment TEXT PRIMARY KEY, amount TEXT NOT NULL, currency TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS emails (payment TEXT PRIMARY KEY, account TEXT NOT NULL, text TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS deliveries (payment TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS deliveries_of_a_payment ON deliveries (payment);";

const HEARD: &str = "
SELECT (SELECT count(*) FROM deliveries WHERE payment = ?1), (SELECT count(*) FROM journal WHERE payment = ?1),
    (SELECT count(*) FROM emails WHERE payment = ?1)";
