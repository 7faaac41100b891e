//! A sink at the end of a pipeline.

use std::path::Path;

use serde_json::Value as Json;

use super::manifest::{Manifest, Origin};
use super::options::SinkOptions;
use super::push::Sink;
use super::report::SinkReport;
use crate::checkpoint::{Checkpoint, fingerprint};
use crate::dataset::{IterDataset, Stage};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::exec::Executor;
use crate::loader::{Load, Loader, LoaderBuilder};

/// Writes pipelines into shards: what every [`IterDataset`] of elements can do.
pub trait WriteTo: IterDataset<Item = Element> {
    /// Runs the pipeline to its end, on all cores, and writes what it yields into shards in `folder`: see [`sink`](crate::sink). A
    /// [`loader`](Load::loader) of your own has the method of that name, too.
    ///
    /// # Errors
    /// As [`LoaderBuilder::write_to`].
    fn write_to(self, options: SinkOptions, folder: impl AsRef<Path>) -> Result<SinkReport>
    where
        Self: Sized + 'static,
    {
        self.loader().executor(Executor::all_cores()).write_to(options, folder)
    }
}

impl<D: IterDataset<Item = Element>> WriteTo for D {}

impl Sink {
    /// Begins or resumes a folder with what a pipeline yields: a loader that goes on where the folder ends.
    ///
    /// # Errors
    /// As [`open`](SinkOptions::open) and [`build`](LoaderBuilder::build); [`ErrorKind::State`](crate::ErrorKind::State) where
    /// the folder was begun with another pipeline. A pipeline that differs in nothing but its border's policy for bad records goes on.
    pub fn of_pipeline<D>(
        options: SinkOptions,
        folder: impl AsRef<Path>,
        builder: LoaderBuilder<D>,
    ) -> Result<(Self, Loader<D>)>
    where
        D: IterDataset<Item = Element> + 'static,
    {
        let sink = options.open(folder)?;
        let builder = match sink.begun() {
            (Some(checkpoint), _) => {
                let checkpoint = under_another_policy(checkpoint.clone(), builder.dataset());
                builder.resume(checkpoint)
            }
            (None, 0) => builder,
            (None, _) => {
                return Err(Error::state("the folder holds records that were not written by a pipeline")
                    .help("write to another folder"));
            }
        };
        let loader = builder.build()?;
        let Checkpoint { fingerprint, pipeline, .. } = loader.state()?;
        sink.with_manifest(|manifest: &mut Manifest| {
            manifest.pipeline = Some(Origin { fingerprint, stages: pipeline })
        });
        Ok((sink, loader))
    }

    /// Writes the next element of `loader`; `false` where there is none.
    ///
    /// # Errors
    /// Those of the pipeline and of [`write`](Self::write).
    pub fn write_next<D>(&mut self, loader: &mut Loader<D>) -> Result<bool>
    where
        D: IterDataset<Item = Element> + 'static,
    {
        if self.is_complete() {
            return Ok(false);
        }
        let Some(element) = loader.next().transpose()? else { return Ok(false) };
        self.write_of(element, loader)?;
        Ok(true)
    }

    /// Writes an element that has just come from `loader`.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(crate) fn write_of<D>(&mut self, element: Element, loader: &Loader<D>) -> Result<()>
    where
        D: IterDataset<Item = Element> + 'static,
    {
        self.write_at(element, || state_of(loader).map(Some))
    }

    /// Writes what is left, where `loader` has come to its end.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn finish_pipeline<D>(self, loader: &Loader<D>) -> Result<SinkReport>
    where
        D: IterDataset<Item = Element> + 'static,
    {
        let state = state_of(loader)?;
        self.finish_at(Some(state))
    }
}

/// The checkpoint as one of this pipeline, if the pipelines differ in nothing but the policy of `to_iter` for bad records: the records that were
/// written are the same.
fn under_another_policy(checkpoint: Checkpoint, pipeline: &dyn Stage) -> Checkpoint {
    let lines = pipeline.lines();
    let without = |lines: &[String]| lines.iter().map(|line| without_policy(line)).collect::<Vec<_>>();
    if without(&lines) != without(&checkpoint.pipeline) {
        return checkpoint;
    }
    Checkpoint { fingerprint: fingerprint(pipeline), pipeline: lines, ..checkpoint }
}

fn without_policy(line: &str) -> String {
    let Some(params) = line.strip_prefix("to_iter(").and_then(|line| line.strip_suffix(')')) else {
        return line.to_owned();
    };
    let rest: Vec<&str> = params.split(", ").filter(|param| !param.starts_with("bad_records=")).collect();
    if rest.is_empty() { "to_iter".to_owned() } else { format!("to_iter({})", rest.join(", ")) }
}

fn state_of<D: IterDataset + 'static>(loader: &Loader<D>) -> Result<Json> {
    Ok(loader.state()?.state)
}

impl<D: IterDataset<Item = Element> + 'static> LoaderBuilder<D> {
    /// Runs the pipeline to its end and writes what it yields to `folder`; with [`resume`](SinkOptions::resume) from where the
    /// folder ends.
    ///
    /// # Errors
    /// Those of the pipeline, with the place of the element; those of [`of_pipeline`](Sink::of_pipeline) and
    /// [`write`](Sink::write). What is published stands.
    pub fn write_to(self, options: SinkOptions, folder: impl AsRef<Path>) -> Result<SinkReport> {
        let (mut sink, mut loader) = Sink::of_pipeline(options, folder, self)?;
        while sink.write_next(&mut loader)? {}
        sink.finish_pipeline(&loader)
    }
}
