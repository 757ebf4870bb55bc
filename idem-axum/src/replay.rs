//! An answer that the application writes anew for each later request.

use std::fmt;

use futures_util::future::BoxFuture;
use idem_core::{Failure, Reply, ResourceRef};

use crate::reply::IntoReply;

/// What writes the answer.
pub(crate) struct Renderer(Render);

type Render = Box<dyn FnOnce(Made) -> BoxFuture<'static, Result<Option<Reply>, Failure>> + Send>;

impl Renderer {
    pub(crate) fn new<F, Fut, T>(render: F) -> Self
    where
        F: FnOnce(Made) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Option<T>, Failure>> + Send + 'static,
        T: IntoReply,
    {
        Self(Box::new(|made| Box::pin(async { Ok(render(made).await?.map(IntoReply::into_reply).transpose()?) })))
    }

    pub(crate) async fn render(self, made: Made) -> Result<Option<Reply>, Failure> {
        (self.0)(made).await
    }
}

impl fmt::Debug for Renderer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Renderer")
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
