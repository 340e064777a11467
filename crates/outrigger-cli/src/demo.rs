//! `outrigger demo`.

use crate::args::{DemoArgs, Global};
use crate::report::Failure;

/// Runs the command.
pub(crate) async fn demo(_: &Global, args: DemoArgs) -> Result<u8, Failure> {
    Err(Failure::new("demo", format!("not yet {:?}", args.keep), None))
}
