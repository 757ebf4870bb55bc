use std::num::NonZero;

use idem_core::{Canonical, IdempotentCommand};

#[derive(Canonical)]
enum Method {
    Cash,
}

type Channel = Option<Box<str>>;

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 1)]
struct Pay {
    #[idem(default = 1)]
    channel: Channel,
    #[idem(default = -1.5, trim)]
    text: Option<String>,
    #[idem(default = true)]
    word: String,
    #[idem(default = "1")]
    count: u32,
    #[idem(default = 1)]
    flag: bool,
    #[idem(default = 'c')]
    method: Method,
    #[idem(default = 1)]
    parts: NonZero<u8>,
    #[idem(default = [])]
    either: bool,
}

fn main() {}
