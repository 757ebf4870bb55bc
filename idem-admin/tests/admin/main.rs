//! The program itself, as a person and as a script run it, on both databases.

#![allow(clippy::unwrap_used, reason = "a test's panic is its verdict, also in the helpers of tests")]

mod bench;
mod checking;
mod deciding;
mod looking;
mod many;

/// Makes a test of each behaviour on SQLite and on PostgreSQL.
macro_rules! on_both {
    ($($behaviour:ident)+) => {
        mod sqlite {
            $(#[test]
            fn $behaviour() {
                crate::bench::on_sqlite(super::$behaviour);
            })+
        }
        mod postgres {
            $(#[test]
            fn $behaviour() {
                crate::bench::on_postgres(super::$behaviour);
            })+
        }
    };
}
pub(crate) use on_both;
