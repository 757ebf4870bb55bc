//! What a later request gets of a success: the stored answer, or one that the application writes anew.

use std::fmt;

use futures_util::future::BoxFuture;
use idem_core::{Failure, Reply, ResourceRef};

use crate::reply::IntoReply;

/// Which promise an operation makes to its second request; see [`Idempotent::replay`](crate::Idempotent::replay).
#[derive(Debug, Default)]
pub enum Replay {
    /// The first answer again, byte for byte, for as long as the window lasts. The default.
    #[default]
    Stored,
    /// The resource as it is today: of a success only its status, the resource ([`Claim::makes`]) and the version of
    /// the answer's form are kept, and the application writes the answer anew. For bodies that must not be stored
    /// (personal data, signed addresses, one-time tokens). A refusal is kept as it is, so it must not hold any.
    ///
    /// [`Claim::makes`]: crate::Claim::makes
    Rebuilt(Rebuilt),
}

impl Replay {
    /// [`Replay::Rebuilt`], with the version of the answer's form that a first request gets, and what writes the
    /// answer of a later one.
    ///
    /// `render` gives `None` where it no longer speaks the kept version, or the resource is gone: the client gets
    /// `IDEMPOTENCY_RESPONSE_NOT_KEPT` with the resource. An error is `IDEMPOTENCY_RESPONSE_NOT_RENDERED`, and the
    /// client asks again. The status is always that of the first answer.
    pub fn rebuilt<F, Fut, T>(schema_version: u32, render: F) -> Self
    where
        F: FnOnce(Made) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Option<T>, Failure>> + Send + 'static,
        T: IntoReply,
    {
        Self::Rebuilt(Rebuilt {
            schema_version,
            render: Box::new(|made| {
                Box::pin(async { Ok(render(made).await?.map(IntoReply::into_reply).transpose()?) })
            }),
        })
    }
}

/// How a success is written anew, [`Replay::rebuilt`].
pub struct Rebuilt {
    pub(crate) schema_version: u32,
    pub(crate) render: Render,
}

pub(crate) type Render = Box<dyn FnOnce(Made) -> BoxFuture<'static, Result<Option<Reply>, Failure>> + Send>;

impl fmt::Debug for Rebuilt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rebuilt").field("schema_version", &self.schema_version).finish_non_exhaustive()
    }
}

/// What is kept of a success that is written anew.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Made {
    /// The status of the first answer.
    pub status: u16,
    /// What the first request made, where it said so.
    pub resource: Option<ResourceRef>,
    /// The version of the form that the first answer had. A newer release may be asked for an older one, and in a
    /// rolling deploy an older release for a newer one.
    pub schema_version: u32,
}
