//! Starting workers, and the messages that travel between them and the parent.
