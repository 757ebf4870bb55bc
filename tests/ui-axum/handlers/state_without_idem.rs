struct App;

const _: () = idem_axum::assert_state::<App>();

fn main() {}
