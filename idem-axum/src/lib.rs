//! idem-axum
