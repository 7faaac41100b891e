//! Upload of an object: a single request if small, otherwise parts that are sent during writing.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::mem;
use std::sync::mpsc::{Receiver, sync_channel};

use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};

use super::bucket::Address;
use super::retry::{given_up, patiently};
use super::runtime;
use crate::error::{Error, ErrorKind, Result};

/// Size of a part in bytes. Stores accept 10,000 parts, so an object has up to 80 GB.
const PART: usize = 8 << 20;
/// Maximum number of parts in flight.
const IN_FLIGHT: usize = 4;

#[derive(Debug)]
pub(in crate::store) struct Upload {
    at: Address,
    part: Vec<u8>,
    written: u64,
    parts: Option<Parts>,
}

#[derive(Debug)]
struct Parts {
    /// `None` while a task completes the upload.
    upload: Option<Box<dyn MultipartUpload>>,
    in_flight: VecDeque<Receiver<object_store::Result<()>>>,
}

impl Upload {
    /// Creates an upload. Sends nothing before the first part is full.
    pub(in crate::store) fn create(at: Address) -> Result<Self> {
        Ok(Self { at, part: Vec::new(), written: 0, parts: None })
    }

    pub(in crate::store) fn finish(mut self) -> Result<u64> {
        self.publish().map_err(|e| e.path(self.at.path())).map(|()| self.written)
    }

    fn publish(&mut self) -> Result<()> {
        if self.parts.is_none() {
            let (client, key) = (self.at.bucket.patient.clone(), self.at.key.clone());
            let payload = PutPayload::from(mem::take(&mut self.part));
            return patiently(async move { client.put(&key, payload).await })?.map(drop).map_err(|e| given_up(&e));
        }
        if !self.part.is_empty() {
            self.send()?;
        }
        let Some(parts) = &mut self.parts else { return Ok(()) };
        parts.wait_for(0)?;
        let Some(mut upload) = parts.upload.take() else { return Ok(()) };
        let (upload, completed) = patiently(async move {
            let completed = upload.complete().await;
            (upload, completed)
        })?;
        match completed {
            Ok(_) => self.parts = None,
            // Put the upload back, so that drop can abort it.
            Err(_) => parts.upload = Some(upload),
        }
        completed.map(drop).map_err(|e| given_up(&e))
    }

    /// Sends the buffered part.
    fn send(&mut self) -> Result<()> {
        if self.parts.is_none() {
            let (client, key) = (self.at.bucket.patient.clone(), self.at.key.clone());
            let begun = patiently(async move { client.put_multipart(&key).await })?;
            let upload = begun.map_err(|e| given_up(&e))?;
            self.parts = Some(Parts { upload: Some(upload), in_flight: VecDeque::new() });
        }
        let Some(parts) = &mut self.parts else { return Ok(()) };
        parts.wait_for(IN_FLIGHT - 1)?;
        let Some(upload) = &mut parts.upload else { return Ok(()) };
        let sent = upload.put_part(PutPayload::from(mem::take(&mut self.part)));
        let (done, wait) = sync_channel(1);
        runtime::spawn(async move { done.send(sent.await).unwrap_or_default() })?;
        parts.in_flight.push_back(wait);
        Ok(())
    }
}

impl Parts {
    /// Waits until at most `count` parts are in flight.
    fn wait_for(&mut self, count: usize) -> Result<()> {
        while self.in_flight.len() > count {
            let Some(part) = self.in_flight.pop_front() else { return Ok(()) };
            let sent = part.recv().map_err(|_| Error::new(ErrorKind::Io, "sending was interrupted"))?;
            sent.map_err(|e| given_up(&e))?;
        }
        Ok(())
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let now = bytes.len().min(PART - self.part.len());
        self.part.extend_from_slice(&bytes[..now]);
        self.written += now as u64;
        if self.part.len() == PART {
            self.send().map_err(|e| io::Error::other(e.path(self.at.path())))?;
        }
        Ok(now)
    }

    /// Does nothing, because a part is sent when it is full.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let Some(mut parts) = self.parts.take() else { return };
        let _ = parts.wait_for(0);
        if let Some(mut upload) = parts.upload {
            // If the abort fails, the store's rule for unfinished uploads removes the parts.
            let _ = runtime::wait(async move { upload.abort().await });
        }
    }
}
