//! Locations of files: a path of this machine, or the URL of an object in a store.
//!
//! Users pass a [`Path`] for both. It is converted to a [`Location`] at the entry.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Path of standard input, even on systems without such a file.
pub(crate) const STDIN: &str = "/dev/stdin";

/// Returns the path of a data file by its name: standard input for `-`.
pub(crate) fn named(name: &Path) -> &Path {
    if name == Path::new("-") { Path::new(STDIN) } else { name }
}

/// Location of a file or folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Location {
    /// A path on this machine.
    Local(PathBuf),
    /// The URL of an object in a store, or of a folder of objects.
    Object(PathBuf),
}

/// Names of files, some of which are excluded.
#[derive(Clone, Debug, Default)]
pub struct Shards {
    pub(crate) patterns: Vec<PathBuf>,
    pub(crate) left_out: Vec<PathBuf>,
    /// The only file to include, if set.
    pub(crate) only: Option<PathBuf>,
}

impl<P: Into<PathBuf>> From<P> for Location {
    /// Parses a path or a URL. A `file://` URL becomes its path.
    fn from(path: P) -> Self {
        let path = path.into();
        match (scheme(&path), path.to_str()) {
            (Some(scheme), Some(text)) if scheme.eq_ignore_ascii_case("file") => {
                let rest = &text[scheme.len() + "://".len()..];
                Self::Local(unescaped(rest.strip_prefix("localhost").unwrap_or(rest)))
            }
            (Some(_), _) => Self::Object(path),
            (None, _) => Self::Local(path),
        }
    }
}

impl AsRef<Path> for Location {
    fn as_ref(&self) -> &Path {
        let (Self::Local(path) | Self::Object(path)) = self;
        path
    }
}

impl Location {
    /// Returns the path or URL in the user's form.
    pub(crate) fn into_path(self) -> PathBuf {
        let (Self::Local(path) | Self::Object(path)) = self;
        path
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// Makes the location of another file on this machine or in this store, from its path.
    pub(crate) fn beside(&self, path: impl FnOnce(&Path) -> PathBuf) -> Self {
        match self {
            Self::Local(this) => Self::Local(path(this)),
            Self::Object(this) => Self::Object(path(this)),
        }
    }

    /// Returns the location of the file `name` in this folder.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> Self {
        self.beside(|folder| folder.join(name))
    }

    /// Returns true if the file exists, or may exist. Stores are queried only when an object is opened.
    pub(crate) fn may_exist(&self) -> bool {
        self.is_object() || self.as_ref() == Path::new(STDIN) || self.as_ref().exists()
    }
}

/// Returns the scheme of a URL: `s3` of `s3://bucket/key`. A single letter is a drive.
pub(crate) fn scheme(path: &Path) -> Option<&str> {
    let (scheme, _) = path.to_str()?.split_once("://")?;
    is_scheme(scheme).then_some(scheme)
}

fn is_scheme(text: &str) -> bool {
    text.len() > 1
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Returns true if a scheme belongs to a web server, whose URLs have queries.
pub(crate) fn is_web(scheme: &str) -> bool {
    ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web))
}

/// Returns true if a URL may name a folder.
///
/// The URL of a folder on a web server ends with a slash. In other URLs, the last part of a folder has no extension.
/// A dataset of the hub (`hf://datasets/org/name`) is a folder, whatever its name.
pub(crate) fn may_be_folder(path: &Path) -> bool {
    let Some(scheme) = scheme(path).filter(|scheme| !scheme.eq_ignore_ascii_case("file")) else { return true };
    let text = path.to_string_lossy();
    let name = text.rsplit('/').next().unwrap_or_default();
    name.is_empty() || is_dataset(path) || !is_web(scheme) && !name.contains('.')
}

/// Returns true if a URL names a whole dataset of the hub.
pub(crate) fn is_dataset(path: &Path) -> bool {
    let parts = |text: &str| text.split('/').count();
    let is_hub = scheme(path).is_some_and(|scheme| scheme.eq_ignore_ascii_case("hf"));
    is_hub && parts(&path.to_string_lossy()) <= parts("hf://datasets/org/name")
}

/// Returns the part of a path or URL that may be shown: a URL without user, password and query.
///
/// User, password and query may contain keys and signatures.
///
/// In doubt, more is hidden. If the host is doubtful, the text before the last `@` is hidden.
/// If there is no `@`, everything after the scheme is hidden.
/// A password may contain any character, including slashes.
pub(crate) fn shown(path: &Path) -> Cow<'_, Path> {
    let text = path.to_string_lossy();
    match Url::of(&text).and_then(|url| url.shown()) {
        Some(text) => Cow::Owned(PathBuf::from(text)),
        None => Cow::Borrowed(path),
    }
}

/// Returns true if a URL contains a user, a password, or an invalid host.
pub(crate) fn has_user(url: &str) -> bool {
    Url::of(url).is_some_and(|url| !url.is_plain())
}

/// Returns the folder of a file in a form that may be shown: signatures may contain slashes.
pub(crate) fn folder_of(file: &Path) -> PathBuf {
    shown(file).parent().map_or_else(PathBuf::new, Path::to_owned)
}

/// Returns the last part of a path or URL, for names and messages.
pub(crate) fn file_name(path: &Path) -> Cow<'_, str> {
    let name = |path: &'_ Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match shown(path) {
        Cow::Borrowed(path) => path.file_name().unwrap_or_default().to_string_lossy(),
        Cow::Owned(path) => Cow::Owned(name(&path)),
    }
}

/// Parts of a URL, or of text that contains a URL after a prefix.
struct Url<'a> {
    /// Text up to the host.
    head: &'a str,
    scheme: &'a str,
    /// Host, including a user before it.
    authority: &'a str,
    /// Authority and path, without the query.
    rest: &'a str,
    has_query: bool,
}

impl<'a> Url<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let colon = text.find(":/")?;
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let scheme = text[..colon].rsplit(|c| !is_part(c)).next().filter(|scheme| is_scheme(scheme))?;
        let behind = text[colon + 1..].trim_start_matches('/');
        let (head, slashes) = (&text[..text.len() - behind.len()], text.len() - behind.len() - colon - 1);
        // A path that was split and joined again has a single slash left.
        if scheme.eq_ignore_ascii_case("file") || slashes < 2 && !is_known(scheme) {
            return None;
        }
        // In object names a question mark is an ordinary character, or a pattern for one.
        let query = behind.find(['?', '#']).filter(|&at| is_web(scheme) || behind[at..].contains('='));
        let rest = &behind[..query.unwrap_or(behind.len())];
        let authority = rest.split(['/', '\\']).next().unwrap_or_default();
        Some(Self { head, scheme, authority, rest, has_query: query.is_some() })
    }

    /// Returns true if the authority is a host, possibly with a port. Azure URLs have a container before the host.
    fn is_plain(&self) -> bool {
        let container = self.authority.split_once('@').filter(|_| has_containers(self.scheme));
        is_host(self.authority) || container.is_some_and(|(container, host)| is_name(container) && is_host(host))
    }

    /// Returns the text that may be shown, unless it is the whole text.
    fn shown(&self) -> Option<String> {
        let Self { head, rest, .. } = self;
        if self.is_plain() {
            return self.has_query.then(|| format!("{head}{rest}"));
        }
        let at = rest.to_ascii_lowercase().rfind("%40").map(|at| at + 3).max(rest.rfind('@').map(|at| at + 1));
        let tail = at.map(|at| &rest[at..]).filter(|tail| is_host(tail.split('/').next().unwrap_or_default()));
        Some(format!("{head}{}", tail.unwrap_or("***")))
    }
}

/// Returns true for the schemes of stores that [`store`](crate::store) reads, and for other schemes whose URLs may contain passwords.
fn is_known(scheme: &str) -> bool {
    let known = ["s3", "s3a", "gs", "gcs", "az", "adl", "azure", "ftp", "ftps", "sftp", "hdfs"];
    is_web(scheme) || has_containers(scheme) || known.iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// Returns true for Azure schemes with a container: `abfss://container@account.dfs.core.windows.net/path`.
fn has_containers(scheme: &str) -> bool {
    ["abfs", "abfss", "wasb", "wasbs"].iter().any(|azure| scheme.eq_ignore_ascii_case(azure))
}

/// Returns true if `text` is a host without a user, possibly with a port.
fn is_host(text: &str) -> bool {
    let is_port = |port: &str| (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(address) = text.strip_prefix('[') {
        let (address, port) = address.split_once(']').unwrap_or((text, ""));
        let is_address = address.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte));
        return is_address && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    if let Some((name, port)) = text.split_once(':') { is_name(name) && is_port(port) } else { is_name(text) }
}

/// Returns true if `text` is the name of a host, a bucket or a container, or a pattern for such names.
fn is_name(text: &str) -> bool {
    !text.contains(['@', ':', '%', '\\'])
}

/// Decodes percent escapes such as `%41`.
pub(crate) fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let code = (first == b'%').then(|| behind.get(..2)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the elements whose names have one of `endings`.
///
/// If there are none, returns the shards, as TFDS and Beam name them: `train.array_record-00000-of-00002`.
pub(crate) fn of_endings<T>(all: Vec<T>, endings: &[&str], name: impl Fn(&T) -> &str) -> Vec<T> {
    let ends = |name: &str| !name.starts_with('.') && endings.iter().any(|ending| name.ends_with(ending));
    let (found, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| ends(name(one)));
    match found.is_empty() {
        true => others.into_iter().filter(|one| unsharded(name(one)).is_some_and(ends)).collect(),
        false => found,
    }
}

/// Returns true if a walk skips files and folders of this name, which contain no data.
///
/// Examples are `_SUCCESS`, `_temporary` and `.staging` of Spark and Hive.
pub(crate) fn is_skipped(name: &str) -> bool {
    name.starts_with(['_', '.'])
}

/// Returns the name without `-00000-of-00002` at its end; `None` if it has no such end.
pub(crate) fn unsharded(name: &str) -> Option<&str> {
    let is_number = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let (rest, count) = name.rsplit_once("-of-")?;
    let (rest, shard) = rest.rsplit_once('-')?;
    (is_number(count) && is_number(shard)).then_some(rest)
}

/// Formats the message for names without a known ending. Lists of more than 8 endings are left out.
pub(crate) fn none_in(what: &str, endings: &[&str]) -> String {
    match endings.len() {
        0..=8 => format!("{what} ends with {}", endings.join(" or ")),
        _ => format!("{what} has the ending of a known format"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_are_told_from_paths() {
        let remote = |text: &str| Location::from(text).is_object();
        assert!(remote("s3://b/k") && remote("https://h/p") && remote("abfss://c@a.dfs.core.windows.net/p"));
        assert!(!remote("a/b") && !remote("c://x") && !remote("file:///a") && !remote("1s://b") && !remote("a b://c"));
        assert_eq!(Location::from("file:///a/b%20c%zz"), Location::Local("/a/b c%zz".into()));
        assert_eq!(Location::from("FILE://localhost/a"), Location::Local("/a".into()));
        assert_eq!(Location::from("a%20b"), Location::Local("a%20b".into()));
    }

    #[test]
    fn folders_are_told_from_objects_by_their_names() {
        let may_be = |text: &str| may_be_folder(Path::new(text));
        assert!(may_be("a.jsonl") && may_be("s3://b/k") && may_be("s3://b/k.v2/") && may_be("http://h/a/"));
        assert!(may_be("hf://datasets/org/name-1.0@v2.1") && !may_be("hf://datasets/org/name/a.jsonl"));
        assert!(!may_be("s3://b/a.jsonl") && !may_be("http://h/a") && !may_be("HTTPS://h/a.jsonl?b"));
    }

    #[test]
    fn signatures_and_passwords_are_not_shown() {
        for (given, want) in [
            ("https://user:secret@host/a?X-Amz-Signature=secret", "https://host/a"),
            ("http://host/a/b@c#secret", "http://host/a/b@c"),
            ("https://user:secret@host", "https://host"),
            ("az://container/key?sv=1&sig=secret", "az://container/key"),
            ("s3://bucket/a-??.jsonl", "s3://bucket/a-??.jsonl"),
            ("abfss://container@account/key", "abfss://container@account/key"),
            ("data/a?b=c", "data/a?b=c"),
            ("http://localhost:8080/@a/b", "http://localhost:8080/@a/b"),
            ("http://[::1]:80/a?b", "http://[::1]:80/a"),
            ("HTTPS://user:secret@host/a", "HTTPS://host/a"),
            ("https://user:se/cret@host/a", "https://host/a"),
            ("https://user:secret%2Fsecret/a", "https://***"),
            ("https:/user:secret@host/a", "https:/host/a"),
            ("s3://KEY:se/cret@bucket/a", "s3://bucket/a"),
            ("gs://token@bucket/a", "gs://bucket/a"),
            ("abfss://container:secret@account/key", "abfss://account/key"),
            ("{https://user:secret@host/a,b}", "{https://host/a,b}"),
        ] {
            assert_eq!(shown(Path::new(given)), Path::new(want));
        }
    }

    /// Generates URLs, and their form without secrets. They have any scheme in any case, any user and password, a path and a query.
    fn spelling() -> impl Strategy<Value = (String, String)> {
        const SCHEMES: &[&str] =
            &["http", "https", "s3", "s3a", "gs", "az", "abfs", "abfss", "ftp", "hdfs", "some+thing"];
        let cased = (proptest::sample::select(SCHEMES), any::<u64>()).prop_map(|(scheme, cases)| {
            let upper = |(i, c): (usize, char)| if cases >> i & 1 == 1 { c.to_ascii_uppercase() } else { c };
            scheme.chars().enumerate().map(upper).collect::<String>()
        });
        let password = "([a-z+=!$&*,;~-]|[/@:\\\\]|%2[fF]|%3[aA]|%40){0,6}SECRET([a-z+=!$]|[/@:\\\\]|%2[fF]|%40){0,6}";
        let host = "[a-z]{1,8}(\\.[a-z]{2,3})?(:[0-9]{1,5})?";
        let path = "(/[a-z0-9._-]{1,8}){0,3}";
        const KEYS: &[&str] =
            &["X-Amz-Signature", "X-Amz-Security-Token", "X-Goog-Signature", "sig", "Signature", "token", "se"];
        let query = (proptest::sample::select(KEYS), "(&[a-z]{1,3}=SECRET){0,2}");
        let query = query.prop_map(|(key, more)| format!("?{key}=SECRET{more}"));
        let user = ("[a-zA-Z]{1,5}", password).prop_map(|(user, password)| format!("{user}:{password}@"));
        (cased, proptest::option::of(user), host, path, proptest::option::of(query)).prop_map(
            |(scheme, user, host, path, query)| {
                let plain = format!("{scheme}://{host}{path}");
                let user = user.unwrap_or_default();
                (format!("{scheme}://{user}{host}{path}{}", query.unwrap_or_default()), plain)
            },
        )
    }

    proptest! {
        #[test]
        fn no_spelling_shows_a_secret((url, plain) in spelling()) {
            let text = shown(Path::new(&url)).to_string_lossy().into_owned();
            prop_assert!(!text.contains("SECRET"), "{}", text);
            prop_assert_eq!(&text, &plain);
            let error = crate::Error::config("wrong").path(&url);
            let texts = [error.to_string(), format!("{error:?}"), file_name(Path::new(&url)).into_owned()];
            prop_assert!(!texts.concat().contains("SECRET"), "{:?}", texts);
            // A URL without secrets is shown whole.
            prop_assert_eq!(shown(Path::new(&plain)), Path::new(&plain));
        }
    }

    #[test]
    fn shards_are_found_where_no_name_ends_as_it_should() {
        let found = |names: &[&'static str]| of_endings(names.to_vec(), &[".array_record"], |name| name);
        assert_eq!(
            found(&["b.array_record", "x-00000-of-00002", "a.array_record"]),
            ["b.array_record", "a.array_record"]
        );
        let shards = ["t.array_record-00000-of-00002", "t.array_record-00001-of-00002"];
        assert_eq!(found(&["features.json", shards[0], shards[1], ".t.array_record-00000-of-00001"]), shards);
        assert_eq!(found(&["t.array_record-0-of-2", "t.array_record-00000-of-", "t.json-00000-of-00001"]), [""; 0]);
        assert_eq!(unsharded("t.tfrecord-00000-of-00002"), Some("t.tfrecord"));
    }
}
