use super::each::{Each, Mapped};
use crate::dataset::facts::Facts;
use crate::dataset::run::opaque::debug_name;
use crate::dataset::stage::Role;
use crate::error::Result;

/// See [`MapDatasetExt::filter`](super::MapDatasetExt::filter).
pub type Filter<D, P> = Mapped<D, FilterFn<P>>;

/// The function of [`Filter`].
#[doc(hidden)]
#[derive(Clone)]
pub struct FilterFn<P>(pub(in crate::dataset) P);

impl<P: Send + Sync> Facts for FilterFn<P> {
    fn name(&self) -> &'static str {
        "filter"
    }
    fn role(&self) -> Role {
        Role::MayDrop
    }
}

impl<T, P: Fn(&T) -> bool + Send + Sync> Each<T> for FilterFn<P> {
    type Out = T;

    #[inline]
    fn apply(&self, _: u64, element: T) -> Result<Option<T>> {
        Ok(self.0(&element).then_some(element))
    }
}

debug_name!(FilterFn<P>);

#[cfg(test)]
mod tests {
    use crate::cx::Cx;
    use crate::dataset::map::{MapDataset, MapDatasetExt, Range};

    #[test]
    fn a_dropped_element_leaves_its_slot() {
        let ds = Range::new(0, 6).filter(|x| x % 3 == 1);
        assert_eq!(ds.len(), 6);
        assert_eq!(ds.get(0, &mut Cx::default()).unwrap(), None);
        assert_eq!(ds.collect().unwrap(), [1, 4]);
    }
}
