//! Counts of the components of mixes.

use serde::{Deserialize, Serialize};

use super::format::{count, percent};
use super::text::unbroken;
use crate::cx::{ComponentCounts, Recorder, StageTally};
use crate::dataset::{Role, Stage};

/// Counts of one component of a mix in a run.
///
/// A component counts the elements that the mix has taken from it. Later stages may hold or drop some of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentReport {
    /// Id of the mix.
    pub mix: usize,
    /// Name of the component: its number, from 0, if the mix has no names.
    pub name: String,
    /// Elements taken in this run.
    pub elements: u64,
    /// Tokens of these elements; `None` if the mix does not count tokens.
    pub tokens: Option<u64>,
    /// Number of epochs that the mix has read to the end, including earlier runs: the component was started again after each. `None` for
    /// a mix with random access.
    pub epochs: Option<u64>,
    /// Whether the component or its budget has ended, so that the mix takes no more of its elements.
    pub has_ended: bool,
}

/// Returns the components of all mixes of `pipeline`, by the ids of the mixes.
pub(crate) fn of(pipeline: &dyn Stage, totals: &[StageTally], recorder: &Recorder) -> Vec<ComponentReport> {
    let (counted, mut found) = (recorder.components(), Vec::new());
    pipeline.walk(&mut |mix, stage| {
        let node = stage.node();
        let names = node.describe.components();
        if names.is_empty() {
            return;
        }
        let parents = names.into_iter().zip(stage.parents_by_id(mix));
        let mut components: Vec<_> = parents
            .map(|(name, (id, parent))| match node.role {
                Role::Order => ComponentReport {
                    mix,
                    name,
                    elements: elements(parent, id, totals),
                    tokens: None,
                    epochs: None,
                    has_ended: false,
                },
                _ => {
                    let counts: ComponentCounts = counted.get(id).copied().unwrap_or_default();
                    ComponentReport {
                        mix,
                        name,
                        elements: counts.elements,
                        tokens: Some(counts.tokens),
                        epochs: Some(counts.restarts),
                        has_ended: counts.has_ended,
                    }
                }
            })
            .collect();
        if components.iter().all(|component| component.tokens == Some(0)) {
            components.iter_mut().for_each(|component| component.tokens = None);
        }
        found.append(&mut components);
    });
    found
}

/// Returns the elements that left `stage`, whose id is `id`. A stage of order counts none, so its parents are counted.
fn elements(stage: &dyn Stage, id: usize, totals: &[StageTally]) -> u64 {
    let counted = totals.get(id).map_or(0, |tally| tally.counts.elements);
    if counted > 0 || stage.role() != Role::Order {
        return counted;
    }
    stage.parents_by_id(id).into_iter().map(|(id, parent)| elements(parent, id, totals)).sum()
}

/// Returns a line for each mix, with its components.
pub(super) fn lines(components: &[ComponentReport]) -> Vec<String> {
    let mixes = components.chunk_by(|one, next| one.mix == next.mix);
    mixes.map(line).collect()
}

fn line(components: &[ComponentReport]) -> String {
    let elements: u64 = components.iter().map(|component| component.elements).sum();
    let tokens: u64 = components.iter().filter_map(|component| component.tokens).sum();
    let share = |part: u64, of: u64| unbroken(&percent(part as f64 / of.max(1) as f64));
    let one = |component: &ComponentReport| {
        let ComponentReport { name, elements: own, .. } = component;
        let mut text = format!("{name} {} of elements", share(*own, elements));
        if let Some(own) = component.tokens {
            text += &format!(", {} of {}", share(own, tokens), unbroken(&format!("{} tokens", count(tokens as f64))));
        }
        match component.epochs {
            Some(epochs) if epochs > 0 => text += &format!(", started again {epochs}×"),
            _ => {}
        }
        if component.has_ended { text + ", ended" } else { text }
    };
    let mix = components.first().map_or(0, |component| component.mix);
    format!("(stage {mix}): {}", components.iter().map(one).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::AtEnd;
    use crate::dataset::iter::mix;
    use crate::dataset::map::{Mix, Range};
    use crate::{Array, BoxIter, Element, IterDatasetExt, Load, MapDatasetExt, Report};

    /// `count` documents of `len` tokens.
    fn documents(count: i64, len: usize) -> BoxIter<Element> {
        let document = move |_| Element::new().with("tokens", Array::from_vec(vec![7i32; len]));
        Range::new(0, count).map(document).to_iter().boxed()
    }

    fn report(dataset: BoxIter<Element>, threads: usize) -> Report {
        let builder = dataset.loader();
        let mut loader = if threads > 0 { builder.threads(threads) } else { builder }.build().unwrap();
        loader.by_ref().for_each(|element| drop(element.unwrap()));
        loader.report()
    }

    fn component(name: &str, elements: u64, tokens: Option<u64>, epochs: u64, has_ended: bool) -> ComponentReport {
        ComponentReport { mix: 6, name: name.to_owned(), elements, tokens, epochs: Some(epochs), has_ended }
    }

    #[test]
    fn a_mix_counts_elements_tokens_and_epochs_of_its_components() {
        let both = || mix([documents(6, 10), documents(30, 1)]);
        let repeated = both().by_tokens("tokens").at_end(AtEnd::Repeat).named(["long", "short"]).limit(40).boxed();
        for threads in [0, 2] {
            let report = report(repeated.clone(), threads);
            let expected = [component("long", 4, Some(40), 0, false), component("short", 36, Some(36), 1, false)];
            if threads == 0 {
                assert_eq!(report.components, expected);
            }
            assert_eq!(report.components[1].epochs, Some(1), "{threads}");
        }
        let ended = report(both().at_end(AtEnd::Redistribute).boxed(), 0);
        assert_eq!(ended.components, [component("0", 6, None, 0, true), component("1", 30, None, 0, true)]);
        let metrics: Vec<_> = ended.metrics().into_iter().map(|metric| (metric.path(), metric.value)).collect();
        for expected in [("component_elements/6_1", 30.0), ("component_epochs/6_0", 0.0)] {
            assert!(metrics.contains(&(format!("input/{}", expected.0), expected.1)), "{metrics:?}");
        }
        let text = ended.to_string();
        assert!(text.contains("mix (stage 6): 0 16.7 % of elements, ended; 1 83.3 % of elements, ended"), "{text}");
    }

    #[test]
    fn a_mix_with_random_access_counts_the_elements_that_were_made() {
        let parts = vec![Range::new(0, 20).shuffle(3).boxed(), Range::new(0, 90).map(|x| x).boxed()];
        let mixed = Mix::new(parts).weights([1.0, 2.0]).named(["a", "b"]).to_iter().boxed();
        let mut loader = mixed.loader().build().unwrap();
        assert_eq!(loader.by_ref().count(), 60);
        let counts: Vec<_> = loader.report().components.into_iter().map(|one| (one.name, one.elements)).collect();
        assert_eq!(counts, [("a".to_owned(), 20), ("b".to_owned(), 40)]);
    }
}
