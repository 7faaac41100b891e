//! Positions of the pages of a row group, and the byte ranges needed for some of its rows.

use std::ops::Range;

use super::group::File;

/// Returns the byte ranges of the pages that contain `rows` of a row group, in the projected columns. Columns without a
/// page index are included whole. Invalid values of a damaged footer are ignored; the decoder reports them.
pub(super) fn pages(file: &File, group: usize, rows: Range<u64>) -> Vec<Range<u64>> {
    let metadata = file.metadata.metadata();
    let info = metadata.row_group(group);
    let mut ranges = Vec::new();
    for column in (0..info.num_columns()).filter(|&column| file.mask.leaf_included(column)) {
        let chunk = info.column(column);
        let begin = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
        let (Ok(begin), Ok(len)) = (u64::try_from(begin), u64::try_from(chunk.compressed_size())) else { continue };
        let end = begin.saturating_add(len);
        let index = metadata.page_index().and_then(|index| index.offset_index(group, column));
        let Some(pages) = index.map(|index| index.page_locations()).filter(|pages| !pages.is_empty()) else {
            ranges.push(begin..end);
            continue;
        };
        let first_row = |place: usize| pages.get(place).map_or(u64::MAX, |page| page.first_row_index.max(0) as u64);
        let is_wanted = |&place: &usize| first_row(place) < rows.end && first_row(place + 1) > rows.start;
        let offset = |place: usize| u64::try_from(pages[place].offset).unwrap_or(end);
        // The dictionary precedes the first page.
        ranges.push(begin..offset(0).max(begin));
        for place in (0..pages.len()).filter(is_wanted) {
            let size = u64::try_from(pages[place].compressed_page_size).unwrap_or(0);
            ranges.push(offset(place)..offset(place).saturating_add(size));
        }
    }
    ranges
}

/// Returns the starts of the pages of a row group, in the projected columns with a page index. Such pages are read
/// whole.
pub(super) fn starts(file: &File, group: usize) -> Vec<u64> {
    let metadata = file.metadata.metadata();
    let (info, Some(index)) = (metadata.row_group(group), metadata.page_index()) else { return Vec::new() };
    let mut starts = Vec::new();
    for column in (0..info.num_columns()).filter(|&column| file.mask.leaf_included(column)) {
        let Some(pages) = index.offset_index(group, column) else { continue };
        let chunk = info.column(column);
        let begin = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
        let offsets = pages.page_locations().iter().map(|page| page.offset).chain([begin]);
        starts.extend(offsets.filter_map(|offset| u64::try_from(offset).ok()));
    }
    starts
}
