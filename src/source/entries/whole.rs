//! Files that are one record each.

use crate::dataset::BoxMap;
use crate::dataset::map::{RandomAccess, Source, SourceFacts};
use crate::element::Element;
use crate::error::{Error, Result};

/// A record for each file, which views it.
#[derive(Debug)]
pub(in crate::source) struct Whole {
    pub(in crate::source) name: &'static str,
    pub(in crate::source) elements: Vec<Element>,
    pub(in crate::source) identity: String,
}

impl Whole {
    pub(in crate::source) fn dataset(self) -> BoxMap<Element> {
        BoxMap::new(Source::new(self))
    }
}

impl RandomAccess for Whole {
    type Record = Element;

    fn len(&self) -> u64 {
        self.elements.len() as u64
    }

    fn read(&self, index: u64) -> Result<Element> {
        let element = usize::try_from(index).ok().and_then(|at| self.elements.get(at));
        element.cloned().ok_or_else(|| Error::data(format!("no file {index}: there are {}", self.elements.len())))
    }

    fn facts(&self) -> SourceFacts {
        SourceFacts { is_native: true, ..SourceFacts::new(self.name, self.identity.clone()) }
    }

    fn record_bytes(&self, record: &Element) -> u64 {
        record.nbytes() as u64
    }
}
