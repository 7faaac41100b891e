//! Host pages as the source of transfers, pinned if the plugin supports it.
#![expect(unsafe_code, reason = "the plugin maps the host's memory for its devices")]

use bytemuck::Zeroable;
use memmap2::{MmapMut, MmapOptions};

use super::abi::{ClientDmaMap, ClientDmaUnmap};
use super::client::Client;
use crate::error::{Error, ErrorKind, Result};
use crate::units::Bytes;

const PAGE: usize = 4096;

/// Page-aligned memory, with all pages touched. Dropping it returns the pages to the system.
pub(super) struct Pages {
    map: MmapMut,
    /// The client whose devices read the pages directly.
    pinned: Option<Client>,
}

impl Pages {
    /// Allocates at least `len` bytes.
    pub(super) fn new(len: usize) -> Result<Self> {
        let refused = |e| {
            Error::new(ErrorKind::Io, format!("no {} of memory for transfers: {e}", Bytes(len as u64))).caused_by(e)
        };
        let mut map = MmapOptions::new().len(len.max(1)).populate().map_anon().map_err(refused)?;
        // Touches all pages on systems that do not populate mappings.
        map.iter_mut().step_by(PAGE).for_each(|byte| *byte = 0);
        Ok(Self { map, pinned: None })
    }

    /// Pins the pages, so that the devices of `client` read them directly. Returns false if the plugin does not support
    /// it.
    ///
    /// # Errors
    /// [`ErrorKind::Device`] if the plugin supports pinning but refuses it.
    pub(super) fn pin(&mut self, client: &Client) -> Result<bool> {
        let api = client.api();
        if self.pinned.is_some() || !api.has::<ClientDmaMap>() || !api.has::<ClientDmaUnmap>() {
            return Ok(self.pinned.is_some());
        }
        let (data, len) = (self.map.as_mut_ptr().cast(), self.map.len());
        // SAFETY: the pages have the declared length, and `drop` unpins them before it frees them.
        match unsafe { api.call(ClientDmaMap { client: client.raw(), data, len, ..Zeroable::zeroed() }) } {
            Ok(_) => self.pinned = Some(client.clone()),
            Err(failure) if failure.is_unimplemented() => {}
            Err(failure) => return Err(client.error(failure)),
        }
        Ok(self.pinned.is_some())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.map
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let Some(client) = self.pinned.take() else { return };
        let args = ClientDmaUnmap { client: client.raw(), data: self.map.as_mut_ptr().cast(), ..Zeroable::zeroed() };
        // SAFETY: the pages were pinned once, for this client, and every reader holds them. A failure changes nothing.
        let _ = unsafe { client.api().call(args) };
    }
}
