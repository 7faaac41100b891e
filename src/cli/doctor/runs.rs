//! Checks that run small pipelines.

use super::check::Check;
use crate::Result;
use crate::spec::{Format, Pipeline};

/// Runs a small pipeline with each kind of executor.
pub(super) fn checks() -> Vec<Check> {
    vec![
        evaluates("threads", "{threads: 2}"),
        #[cfg(all(feature = "workers", target_os = "linux"))]
        evaluates("workers", "{workers: 1, ram_budget: 256MiB}"),
    ]
}

fn evaluates(what: &str, executor: &str) -> Check {
    let text = format!("source: {{range: 64}}\nstages: [to_iter, batch: 8]\nexecutor: {executor}\n");
    let run = || -> Result<u64> {
        let pipeline = Pipeline::from_text(text, Format::Yaml, ".")?;
        let batches = pipeline.run_options().loader(pipeline.build()?, &pipeline)?.build()?;
        batches.map(|batch| batch.map(|_| 1)).sum()
    };
    let all = |n| if n == 8 { Ok(()) } else { Err(crate::Error::data(format!("{n} of 8 batches came"))) };
    match run().and_then(all) {
        Ok(()) => Check::good(what, "a small pipeline ran"),
        Err(error) => Check::bad(what, &error),
    }
}
