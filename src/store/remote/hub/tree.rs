//! Listings of dataset folders.

use std::collections::HashSet;

use object_store::client::HttpResponse;
use object_store::path::Path as Key;
use object_store::{ListResult, ObjectMeta};
use serde::Deserialize;
use url::Url;

use super::place::Place;
use super::refusal::{Refusal, error_code, wrong};
use super::{Inner, Result, meta};

impl Inner {
    /// Lists a folder, including all subfolders if `recursive`.
    pub(super) async fn tree(&self, prefix: Option<&Key>, recursive: bool) -> Result<ListResult> {
        let place = Place::parse(prefix.map_or("", Key::as_ref))?;
        let commit = self.commit(&place).await?;
        let [org, name] = place.names();
        let parts = ["api", "datasets", org, name, "tree", &commit];
        let mut url = self.url(parts.into_iter().chain(place.path.split('/').filter(|part| !part.is_empty())));
        url.query_pairs_mut().append_pair("recursive", if recursive { "true" } else { "false" });
        let (mut objects, mut common_prefixes) = (Vec::new(), Vec::new());
        let (mut next, mut seen) = (Some(url), HashSet::new());
        while let Some(url) = next {
            if !seen.insert(url.clone()) {
                return Err(wrong(Refusal::NotUnderstood("a next page that was listed before")));
            }
            let response = self.ask("GET", &url, None).await?;
            if response.status().as_u16() == 404 && error_code(&response) == Some("EntryNotFound") {
                break;
            }
            next = self.next_page(&url, &response)?;
            for item in self.json::<Vec<Item>>(&place, response).await? {
                let location = Key::parse(format!("{}/{}", place.root, item.path))?;
                match item.kind == "directory" {
                    true => common_prefixes.push(location),
                    false => objects.push(item.meta(location)),
                }
            }
        }
        Ok(ListResult { common_prefixes, objects, extensions: Default::default() })
    }

    /// Returns the URL of the next page, which must be on the hub.
    fn next_page(&self, url: &Url, response: &HttpResponse) -> Result<Option<Url>> {
        let link = response.headers().get("link").and_then(|value| value.to_str().ok());
        let Some(to) = link.and_then(next_link) else { return Ok(None) };
        match url.join(to).ok().filter(|to| to.origin() == self.endpoint.origin()) {
            Some(to) => Ok(Some(to)),
            None => Err(wrong(Refusal::NotUnderstood("a next page that is on another server"))),
        }
    }
}

/// File or folder in a listing.
#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    size: u64,
    oid: Option<String>,
    lfs: Option<Large>,
}

/// Part of a listing for a file with separately stored bytes.
#[derive(Deserialize)]
struct Large {
    oid: String,
    size: u64,
}

impl Item {
    fn meta(self, location: Key) -> ObjectMeta {
        let (oid, size) = self.lfs.map_or((self.oid, self.size), |large| (Some(large.oid), large.size));
        meta(location, size, oid.map(|oid| format!("\"{oid}\"")))
    }
}

/// Returns the URL of `rel="next"` in a `Link` header (RFC 8288).
fn next_link(link: &str) -> Option<&str> {
    let is_next = |link: &&str| link.split(';').skip(1).any(|part| part.trim().replace('"', "") == "rel=next");
    link.split(',').find(is_next)?.split(';').next()?.trim().strip_prefix('<')?.strip_suffix('>')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_the_one_that_is_called_so() {
        let link = "<https://h/first>; rel=\"first\", <https://h/a?cursor=b%3D>; rel=\"next\"";
        assert_eq!(next_link(link), Some("https://h/a?cursor=b%3D"));
        assert_eq!(next_link("</a>; rel=next"), Some("/a"));
        assert_eq!(next_link("<https://h/first>; rel=\"first\""), None);
        assert_eq!(next_link("next"), None);
    }
}
