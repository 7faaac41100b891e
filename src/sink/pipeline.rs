//! A sink at the end of a pipeline.

use std::path::Path;

use serde_json::Value as Json;

use super::manifest::{Manifest, Origin};
use super::options::SinkOptions;
use super::push::Sink;
use super::report::SinkReport;
use crate::checkpoint::{Checkpoint, fingerprint};
use crate::dataset::iter::Elements;
use crate::dataset::{IterDataset, Stage};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::exec::Executor;
use crate::loader::{Load, Loader, LoaderBuilder};

/// Writing of pipelines as shards, implemented for every [`IterDataset`] of elements.
pub trait WriteTo: IterDataset<Item = Element> {
    /// Runs the pipeline to its end on all cores, and writes its elements as shards in `folder`: see
    /// [`sink`](crate::sink).
    ///
    /// A custom [`loader`](Load::loader) has a method with this name, too.
    ///
    /// # Errors
    /// The errors of [`LoaderBuilder::write_to`].
    fn write_to(self, options: SinkOptions, folder: impl AsRef<Path>) -> Result<SinkReport>
    where
        Self: Sized + 'static,
    {
        self.loader().executor(Executor::all_cores()).write_to(options, folder)
    }
}

impl<D: Elements> WriteTo for D {}

impl Sink {
    /// Opens a folder for the elements of a pipeline, and a loader that continues after the records in the folder.
    ///
    /// # Errors
    /// The errors of [`open`](SinkOptions::open) and [`build`](LoaderBuilder::build);
    /// [`ErrorKind::State`](crate::ErrorKind::State) if the folder was begun with another pipeline. A pipeline may
    /// differ in its border's policy for bad records.
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

    /// Writes the next element of `loader`; returns `false` if there are no more elements.
    ///
    /// # Errors
    /// The errors of the pipeline and of [`write`](Self::write).
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

    /// Writes an element that `loader` has just yielded.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    pub(crate) fn write_of<D>(&mut self, element: Element, loader: &Loader<D>) -> Result<()>
    where
        D: IterDataset<Item = Element> + 'static,
    {
        self.write_at(element, || state_of(loader).map(Some))
    }

    /// Writes the remaining elements after the end of `loader`, and finishes the sink.
    ///
    /// # Errors
    /// The errors of [`finish`](Self::finish).
    pub fn finish_pipeline<D>(self, loader: &Loader<D>) -> Result<SinkReport>
    where
        D: IterDataset<Item = Element> + 'static,
    {
        let state = state_of(loader)?;
        self.finish_at(Some(state))
    }
}

/// Converts a checkpoint to this pipeline if the pipelines differ only in the policy of `to_iter` for bad records. The
/// policy does not affect the records that were written.
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
    /// Runs the pipeline to its end and writes its elements to `folder`. With [`resume`](SinkOptions::resume), it
    /// continues after the records in the folder.
    ///
    /// # Errors
    /// The errors of the pipeline, with the place of the element; the errors of [`of_pipeline`](Sink::of_pipeline) and
    /// [`write`](Sink::write). Published shards are kept.
    pub fn write_to(self, options: SinkOptions, folder: impl AsRef<Path>) -> Result<SinkReport> {
        let (mut sink, mut loader) = Sink::of_pipeline(options, folder, self)?;
        while sink.write_next(&mut loader)? {}
        sink.finish_pipeline(&loader)
    }
}
