use idem_core::Canonical;

#[derive(Canonical)]
union Either {
    a: u32,
    b: i32,
}

fn main() {}
