use idem_core::{Canonical, IdempotentCommand};

mod ghost {
    pub struct PhantomData(pub u8);
}

#[derive(IdempotentCommand)]
#[idem(operation = "haunt", version = 1)]
struct Haunt(u8, ghost::PhantomData, u8);

#[derive(Canonical)]
struct Newtype(u8, ghost::PhantomData);

#[derive(Canonical)]
enum Either {
    Newtype(ghost::PhantomData, u8),
    Real(std::marker::PhantomData<u8>, u8),
}

fn main() {}
