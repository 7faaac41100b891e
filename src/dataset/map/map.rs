use super::Many;
use super::each::{Each, Mapped};
use crate::dataset::facts::Facts;
use crate::dataset::iter::IterMapped;
use crate::dataset::run::opaque::debug_name;
use crate::error::{Error, Result};

/// See [`MapDatasetExt::map`](super::MapDatasetExt::map).
pub type Map<D, F> = Mapped<D, MapFn<F>>;

/// See [`MapDatasetExt::try_map`](super::MapDatasetExt::try_map).
pub type TryMap<D, F> = Mapped<D, TryMapFn<F>>;

/// See [`IterDatasetExt::map`](crate::IterDatasetExt::map).
pub type IterMap<D, F> = IterMapped<D, MapFn<F>, ()>;

/// See [`IterDatasetExt::try_map`](crate::IterDatasetExt::try_map).
pub type IterTryMap<D, F> = IterMapped<D, TryMapFn<F>, ()>;

/// The function of [`Map`].
#[doc(hidden)]
#[derive(Clone)]
pub struct MapFn<F>(pub(in crate::dataset) F);

/// The function of [`TryMap`].
#[doc(hidden)]
#[derive(Clone)]
pub struct TryMapFn<F>(pub(in crate::dataset) F);

impl<F: Send + Sync> Facts for MapFn<F> {
    facts! { name: "map" }
}

impl<T, U, F: Fn(T) -> U + Send + Sync> Each<T> for MapFn<F> {
    const IS_ONE: bool = true;
    type Out = U;

    #[inline]
    fn apply(&self, _: u64, element: T) -> Result<Option<U>> {
        Ok(Some(self.0(element)))
    }

    #[inline]
    fn apply_many(&self, _: &[u64], many: Many<T>, _: impl Fn(Error) -> Error + Copy) -> Many<U> {
        many.map(|_, element| self.0(element))
    }
}

impl<F: Send + Sync> Facts for TryMapFn<F> {
    facts! { name: "map" }
}

impl<T, U, F: Fn(T) -> Result<U> + Send + Sync> Each<T> for TryMapFn<F> {
    const IS_ONE: bool = true;
    type Out = U;

    #[inline]
    fn apply(&self, _: u64, element: T) -> Result<Option<U>> {
        self.0(element).map(Some)
    }
}

debug_name!(MapFn<F>);
debug_name!(TryMapFn<F>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Cx;
    use crate::dataset::map::{MapDataset, MapDatasetExt, Range};

    #[test]
    fn an_error_names_the_stage() {
        let ds = Range::new(0, 3).map(|x| x + 1).try_map(|x| if x == 2 { Err(Error::user("no twos")) } else { Ok(x) });
        let mut cx = Cx::default();
        assert_eq!(ds.get(0, &mut cx).unwrap(), Some(1));
        assert_eq!(ds.get(1, &mut cx).unwrap_err().to_string(), "stage 2 map: no twos");
    }
}
