//! idem in the router's state: [`Idem`].

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use idem_core::{Engine, Store};

use crate::builder::IdemBuilder;
use crate::execute::Replies;
use crate::gate::{Gate, StillRunning};
use crate::problem::Wording;
use crate::scope::{NoTenants, Tenants};

/// idem for one service: an [`Engine`] and whose request each one is. Clones share it; it belongs into the router's
/// state.
///
/// ```
/// use axum::extract::FromRef;
/// use idem_axum::{Idem, assert_state};
/// use idem_core::MemoryStore;
///
/// #[derive(Clone)]
/// struct App { idem: Idem }
///
/// impl FromRef<App> for Idem {
///     fn from_ref(app: &App) -> Self { app.idem.clone() }
/// }
///
/// assert_state::<App>();
/// let idem = Idem::builder(MemoryStore::new()).single_tenant("acme")?.build()?;
/// let app = App { idem };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Idem {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) tenants: Tenants,
    pub(crate) wording: Wording,
    pub(crate) gate: Gate,
    pub(crate) replies: Replies,
    /// The operations that take requests without a key.
    pub(crate) unkeyed: HashSet<&'static str>,
}

impl Idem {
    /// Sets idem up over a store. It cannot be built before it was said how a request's tenant is found:
    ///
    /// ```compile_fail,E0277
    /// use idem_axum::Idem;
    ///
    /// let idem = Idem::builder(idem_core::MemoryStore::new()).build();
    /// ```
    pub fn builder(store: impl Store + 'static) -> IdemBuilder<NoTenants> {
        IdemBuilder::new(Engine::builder(store))
    }

    /// The engine, for what enters without HTTP: a queue's consumer shares records with the handlers.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// Waits until no work of a handler runs any more, also none whose client has gone, for at most `patience`.
    ///
    /// The last step of a graceful shutdown. Stop taking requests first: axum's own graceful shutdown waits for the
    /// connections, and a client that hung up has none. What still runs when the process ends is taken over after
    /// its lease, as after any crash.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use idem_axum::Idem;
    /// # use idem_core::MemoryStore;
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let idem = Idem::builder(MemoryStore::new()).single_tenant("acme")?.build()?;
    /// // axum::serve(listener, router).with_graceful_shutdown(signal).await?;
    /// idem.drain(Duration::from_secs(30)).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`StillRunning`], with how much, when `patience` is over.
    pub async fn drain(&self, patience: Duration) -> Result<(), StillRunning> {
        self.inner.gate.drain(patience).await
    }

    pub(crate) fn new(inner: Inner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }
}

impl fmt::Debug for Idem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idem").field("engine", &self.inner.engine).finish_non_exhaustive()
    }
}

/// A router's state that has an [`Idem`].
///
/// Given for every state that `Idem` can be had from by axum's `FromRef` (derived on the state, or `Idem` as the
/// state itself), and for an `Arc` of such a state. For any other, one method:
///
/// ```
/// use std::sync::Arc;
/// use idem_axum::{HasIdem, Idem, assert_state};
///
/// struct App { idem: Idem }
///
/// impl HasIdem for App {
///     fn idem(&self) -> Idem { self.idem.clone() }
/// }
///
/// assert_state::<Arc<App>>();
/// ```
///
/// ```compile_fail,E0277
/// struct App;
///
/// idem_axum::assert_state::<App>();
/// ```
#[diagnostic::on_unimplemented(
    message = "the router's state `{Self}` has no idem",
    label = "no `Idem` in this state",
    note = "give the state a field `idem: Idem` and `#[derive(FromRef)]`, or implement `idem_axum::HasIdem` for it"
)]
pub trait HasIdem {
    /// The state's idem.
    fn idem(&self) -> Idem;
}

// Without this a state that lacks idem is told to implement `FromRef` for a reason that nobody sees.
#[diagnostic::do_not_recommend]
impl<S> HasIdem for S
where
    Idem: FromRef<S>,
{
    fn idem(&self) -> Idem {
        Idem::from_ref(self)
    }
}

impl<T: HasIdem> HasIdem for Arc<T> {
    fn idem(&self) -> Idem {
        T::idem(self)
    }
}

/// Compiles where [`Idempotent`](crate::Idempotent) can be extracted from a router with the state `S`. In a test or a
/// `const`, it says in one line what a handler that does not fit says in twenty.
pub const fn assert_state<S: HasIdem + Send + Sync + 'static>() {}
