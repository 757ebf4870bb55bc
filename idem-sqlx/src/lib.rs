//! idem-sqlx
