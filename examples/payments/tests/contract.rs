//! The contracts of the service's commands: a change of what makes two requests one shows here, before a deploy.

use payments::payment::CreatePayment;
use payments::transfer::CreateTransfer;
use rust_decimal::Decimal;

fn typical() -> CreatePayment {
    CreatePayment {
        account_id: "acc_8f14e45f".to_owned(),
        amount: Decimal::new(12_345, 1),
        currency: "eur".to_owned(),
        merchant_reference: "order-1041-invoice-1".to_owned(),
        channel: Some("mobile".to_owned()),
        trace_id: Some("not part of it".to_owned()),
    }
}

fn minimal() -> CreatePayment {
    CreatePayment { channel: None, trace_id: None, ..typical() }
}

#[test]
fn create_payment_contract() {
    idem_core::assert_contract!(CreatePayment, { "typical" => typical(), "minimal" => minimal() });
}

#[test]
fn create_transfer_contract() {
    let typical = CreateTransfer {
        from_account_id: "acc_8f14e45f".to_owned(),
        to_account_id: "acc_c9f0f895".to_owned(),
        amount: Decimal::new(12_345, 1),
        currency: "eur".to_owned(),
    };
    idem_core::assert_contract!(CreateTransfer, { "typical" => typical });
}
