use idem_core::IdempotentCommand;

#[derive(IdempotentCommand)]
#[idem(version = 1)]
struct PayV1 {
    cents: u64,
}

#[derive(IdempotentCommand)]
#[idem(operation = "pay", version = 2, previous = PayV1)]
struct PayV2 {
    cents: u64,
}

#[derive(IdempotentCommand)]
#[idem(operation = "refund")]
struct RefundV1 {
    cents: u64,
}

#[derive(IdempotentCommand)]
#[idem(operation = "refund", version = 2, previous = RefundV1, oldest = 2)]
struct RefundV2 {
    cents: u64,
}

macro_rules! conversions {
    ($old:ident, $new:ident) => {
        impl From<&$new> for $old {
            fn from(new: &$new) -> Self {
                Self { cents: new.cents }
            }
        }

        impl From<$old> for $new {
            fn from(old: $old) -> Self {
                Self { cents: old.cents }
            }
        }
    };
}

conversions!(PayV1, PayV2);
conversions!(RefundV1, RefundV2);

fn main() {}
