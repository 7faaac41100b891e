//! Elements in an extent: how they are written by a worker and viewed by the parent.
