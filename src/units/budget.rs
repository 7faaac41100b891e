//! RAM budgets.

use crate::error::{Error, Result};

/// Minimum RAM budget in bytes.
pub(crate) const LEAST_BUDGET: u64 = 1 << 20;

/// Checks that `bytes` can be a RAM budget. The error helps users who have left out MiB or GiB.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) below 1 MiB.
pub(crate) fn check_budget(bytes: u64) -> Result<()> {
    if bytes >= LEAST_BUDGET {
        return Ok(());
    }
    let help = format!("a number without a unit counts bytes: did you mean {bytes}MiB?");
    Err(Error::config(format!("ram_budget is {bytes} bytes, and must be 1 MiB or more")).help(help))
}
