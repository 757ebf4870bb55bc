//! Takes the Rust code out of the README, in the order it stands there: the command, its handler, what they need around
//! them, and the review.

use std::path::Path;
use std::{env, fs};

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let readme = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../README.md");
    println!("cargo::rerun-if-changed={}", readme.display());
    let readme = fs::read_to_string(readme)?;
    let blocks: Vec<&str> = readme.split("\n```rust\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect();
    let [command, handler, around, review] = blocks.as_slice() else {
        return Err(format!("the README has {} blocks of Rust; say here what each is for", blocks.len()).into());
    };
    let code = format!(
        "async fn readme() -> Result<Router, Box<dyn std::error::Error>> {{\n\
         {around}\n{command}\n{handler}\n\
         let app = App {{ idem, ledger: Arc::new(Ledger), provider: Arc::new(Provider) }};\n\
         fn typical() -> CreatePayment {{ unreachable!() }}\nfn minimal() -> CreatePayment {{ unreachable!() }}\n{review}\n\
         let _: fn() = create_payment_contract;\n\
         Ok(Router::new().route(\"/payments\", post(create_payment)).with_state(app))\n}}\n"
    );
    // A test inside a function is found by nobody, and would be taken out of what is compiled here.
    fs::write(Path::new(&env::var("OUT_DIR")?).join("readme.rs"), code.replace("#[test]\n", ""))?;
    Ok(())
}
