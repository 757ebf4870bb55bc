//! The contract of the office's command.

use payments::office::SendReceipt;

#[test]
fn send_receipt_contract() {
    let typical = SendReceipt {
        payment: "pay_0000000000000000000000000a".to_owned(),
        account: "acc_8f14e45f".to_owned(),
        text: "We have received 10.00 EUR.".to_owned(),
    };
    idem_core::assert_contract!(SendReceipt, { "typical" => typical });
}
