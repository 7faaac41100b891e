//! What stores of buckets are asked besides objects: lists, uploads and deletions, in the XML that S3 and Google have in common.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use super::{Object, Request, tag_of, tagged};

/// Entries of a list that come at once: few, so that every list has several pages.
const PAGE: usize = 2;

/// Parts of objects that are not whole, by upload and number.
pub(crate) type Parts = BTreeMap<(String, u32), Vec<u8>>;

/// What is answered: a status, a header line if there is one, and a body.
pub(super) type Answer = (u16, String, String);

/// What a request asks for.
pub(super) struct Asked {
    /// The object, with its bucket in front.
    pub(super) name: String,
    query: HashMap<String, String>,
}

impl Asked {
    pub(super) fn of(path: &str) -> Self {
        let (name, query) = path.split_once('?').unwrap_or((path, ""));
        let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let query = pairs.map(|(key, value)| (decoded(key), decoded(&value.replace('+', " ")))).collect();
        Self { name: decoded(name.trim_end_matches('/')), query }
    }

    /// The answer, unless it is an object that is asked for.
    pub(super) fn answer(
        &self,
        request: &Request,
        body: &[u8],
        objects: &mut BTreeMap<String, Object>,
        parts: &mut Parts,
    ) -> Option<Answer> {
        let upload = self.query.get("uploadId");
        let tagged = |tag: &str| (200, tagged(tag), String::new());
        Some(match (request.method.as_str(), upload) {
            ("GET", _) if self.query.contains_key("list-type") => (200, String::new(), self.list(objects)),
            ("POST", None) if self.query.contains_key("uploads") => {
                let id = format!("upload-of{}", self.name.replace('/', "-"));
                let begun =
                    format!("<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>");
                (200, String::new(), begun)
            }
            ("PUT", Some(id)) => {
                parts.insert((id.clone(), self.query["partNumber"].parse().ok()?), body.to_vec());
                tagged(&tag_of(body))
            }
            ("POST", Some(id)) => self.complete(id, body, objects, parts),
            ("DELETE", Some(id)) => {
                parts.retain(|(of, _), _| of != id);
                (204, String::new(), String::new())
            }
            ("POST", None) if self.query.contains_key("delete") => self.delete(body, objects),
            ("PUT", None) if !request.agrees(objects.get(&self.name)) => (412, String::new(), String::new()),
            ("PUT", None) => {
                let tag = tag_of(body);
                let answer = tagged(&tag);
                objects.insert(self.name.clone(), (body.into(), tag));
                answer
            }
            ("DELETE", None) => match objects.remove(&self.name) {
                Some(_) => (204, String::new(), String::new()),
                None => (404, String::new(), String::new()),
            },
            _ => return None,
        })
    }

    /// Makes an object of its parts, which must be those that the client has sent.
    fn complete(&self, id: &str, body: &[u8], objects: &mut BTreeMap<String, Object>, parts: &mut Parts) -> Answer {
        let sent: Vec<Vec<u8>> = parts.iter().filter(|((of, _), _)| of == id).map(|(_, part)| part.clone()).collect();
        let list = String::from_utf8_lossy(body);
        let listed = list.split("<ETag>").skip(1).map(|tag| tag.split("</ETag>").next().unwrap_or_default());
        if !listed.eq(sent.iter().map(|part| tag_of(part))) {
            return (400, String::new(), String::new());
        }
        parts.retain(|(of, _), _| of != id);
        let whole = sent.concat();
        let tag = tag_of(&whole);
        let done = format!("<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>");
        objects.insert(self.name.clone(), (whole.into(), tag));
        (200, String::new(), done)
    }

    /// Removes several objects, as S3 is asked for it even of one.
    fn delete(&self, body: &[u8], objects: &mut BTreeMap<String, Object>) -> Answer {
        let list = String::from_utf8_lossy(body);
        let keys = list.split("<Key>").skip(1).map(|key| key.split("</Key>").next().unwrap_or_default());
        let mut deleted = String::new();
        for key in keys {
            objects.remove(&format!("{}/{key}", self.name));
            deleted += &format!("<Deleted><Key>{key}</Key></Deleted>");
        }
        (200, String::new(), format!("<DeleteResult>{deleted}</DeleteResult>"))
    }

    /// A page of what lies in a bucket, folders as such where a delimiter is given.
    fn list(&self, objects: &BTreeMap<String, Object>) -> String {
        let word = |name: &str| self.query.get(name).map_or("", String::as_str);
        let (prefix, from) = (word("prefix"), word("continuation-token"));
        let mut entries: BTreeMap<String, Option<&Object>> = BTreeMap::new();
        for (name, object) in objects {
            let Some(key) = name.strip_prefix(&format!("{}/", self.name)) else { continue };
            let Some(rest) = key.strip_prefix(prefix) else { continue };
            match rest.split_once('/').filter(|_| word("delimiter") == "/") {
                Some((folder, _)) => entries.insert(format!("{prefix}{folder}/"), None),
                None => entries.insert(key.to_owned(), Some(object)),
            };
        }
        let left: Vec<_> = entries.into_iter().filter(|(key, _)| key.as_str() > from).collect();
        let (mut files, mut folders) = (String::new(), String::new());
        for (key, object) in left.iter().take(PAGE) {
            let result = match object {
                Some((bytes, tag)) => write!(
                    files,
                    "<Contents><Key>{key}</Key><LastModified>2026-01-02T03:04:05.678Z</LastModified><ETag>{tag}</ETag>\
                     <Size>{}</Size></Contents>",
                    bytes.len()
                ),
                None => write!(folders, "<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>"),
            };
            result.unwrap();
        }
        let next = left.get(PAGE - 1).filter(|_| left.len() > PAGE);
        let next = next.map(|(key, _)| format!("<NextContinuationToken>{key}</NextContinuationToken>"));
        format!("<ListBucketResult>{}{files}{folders}</ListBucketResult>", next.unwrap_or_default())
    }
}

/// Without the escapes of URLs.
fn decoded(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        bytes.push(u8::from_str_radix(&piece[..2], 16).unwrap());
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}
