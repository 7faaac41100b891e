//! Reads a whole epoch into memory.

use super::foresight::Foresight;
use super::pace::Pace;
use crate::cx::Cx;
use crate::dataset::map::MapDataset;
use crate::dataset::stage::Stage;
use crate::error::Result;

/// Reads an epoch on this thread, and skips empty slots.
pub(crate) fn collect<D: MapDataset>(dataset: &D) -> Result<Vec<D::Item>> {
    (dataset as &dyn Stage).check_all()?;
    let (mut cx, pace, mut rest) = (Cx::default(), Pace::of(dataset), 0..dataset.len());
    let (mut all, mut foresight) = (Vec::new(), Foresight::of(dataset));
    while !rest.is_empty() {
        foresight.iter_mut().for_each(|foresight| foresight.tell(dataset, rest.start, rest.end));
        let chunk = |range, cx: &mut Cx| pace.get(dataset, range, cx);
        let mut slots = pace.chunk(&mut rest, &mut cx, chunk).into_iter();
        while slots.len() > 0 {
            slots.run(usize::MAX, &mut all);
            slots.next().transpose()?;
        }
    }
    Ok(all)
}
