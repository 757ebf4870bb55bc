//! What several test modules share.

pub(crate) mod clock;
pub(crate) mod faulty;
pub(crate) mod log;
