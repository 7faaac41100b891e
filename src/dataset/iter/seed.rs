use super::IterDataset;
use super::dataset::same_stream;
use crate::dataset::map::Seed;

same_stream!(Seed, parent);
