//! Seals: signatures over the ends of the audit and of the log. Records before a seal cannot be changed, removed or cut off
//! without the key, which is in a separate file.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_stdx::text::unhex;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use rusqlite::{Connection, Result, params};

use super::chain;
use super::redact::Redactor;
use crate::chain::{GENESIS, Hash, Head};
use crate::error::StoreError;
use crate::open::beside;

/// Decision of a record about a missing seal file.
pub(crate) const SEAL_LOST: &str = "seal lost";

/// Content of a seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    /// Number of the last audit record before it.
    pub(crate) seq: i64,
    /// Everything up to that record was removed by the retention.
    pub(crate) cut: bool,
    /// That record's hash.
    pub(crate) hash: Vec<u8>,
    /// Number of the last record of the log.
    pub(crate) log_seq: i64,
    /// That record's hash.
    pub(crate) log_hash: Vec<u8>,
    /// Time of the last audit record.
    pub(crate) at: i64,
    /// Public half of the key.
    pub(crate) key: Vec<u8>,
    /// Ed25519.
    pub(crate) signature: Vec<u8>,
}

/// Location of a seal. It is part of the signed data: a seal from the store is not valid in the separate file. Otherwise an
/// attacker who cuts off the end could take the file's new content from the seals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealPlace {
    Store,
    Beside,
}

impl Seal {
    // Every field has a fixed length except the hashes, which are preceded by theirs.
    fn signed_bytes(&self, place: SealPlace) -> Vec<u8> {
        let mut bytes = match place {
            SealPlace::Store => b"outrigger-audit-seal-1".to_vec(),
            SealPlace::Beside => b"outrigger-audit-last-1".to_vec(),
        };
        bytes.extend(self.seq.to_be_bytes());
        bytes.push(u8::from(self.cut));
        bytes.extend(self.log_seq.to_be_bytes());
        bytes.extend(self.at.to_be_bytes());
        for hash in [&self.hash, &self.log_hash] {
            bytes.extend((hash.len() as u64).to_be_bytes());
            bytes.extend(hash);
        }
        bytes
    }

    /// Returns whether it was made for this location, with the key whose public half is `key`.
    pub(crate) fn is_signed_by(&self, key: &[u8], place: SealPlace) -> bool {
        self.key == key
            && UnparsedPublicKey::new(&ED25519, key)
                .verify(&self.signed_bytes(place), &self.signature)
                .is_ok()
    }

    fn sign(&mut self, key: &Ed25519KeyPair, place: SealPlace) {
        self.key = public(key);
        self.signature = key.sign(&self.signed_bytes(place)).as_ref().to_vec();
    }

    /// Returns the seal of an empty audit.
    fn of_nothing() -> Self {
        Self {
            seq: 0,
            cut: false,
            hash: GENESIS.to_vec(),
            log_seq: 0,
            log_hash: GENESIS.to_vec(),
            at: 0,
            key: Vec::new(),
            signature: Vec::new(),
        }
    }

    /// Returns the line for the separate file.
    fn line(&self) -> String {
        format!(
            "{} {} {} {} {} {} {} {}\n",
            self.seq,
            u8::from(self.cut),
            crate::hex(&self.hash),
            self.log_seq,
            crate::hex(&self.log_hash),
            self.at,
            crate::hex(&self.key),
            crate::hex(&self.signature)
        )
    }

    fn from_line(line: &str) -> Option<Self> {
        let mut parts = line.split_whitespace();
        Some(Self {
            seq: parts.next()?.parse().ok()?,
            cut: parts.next()? == "1",
            hash: unhex(parts.next()?)?,
            log_seq: parts.next()?.parse().ok()?,
            log_hash: unhex(parts.next()?)?,
            at: parts.next()?.parse().ok()?,
            key: unhex(parts.next()?)?,
            signature: unhex(parts.next()?)?,
        })
    }
}

/// Returns the path of the key file.
pub(crate) fn key_path(store: &Path) -> PathBuf {
    beside(store, "-audit-key")
}

/// Returns the path of the file with the last seal: cutting off the end of the audit in the database, including its seals,
/// leaves this file unchanged.
pub(crate) fn seal_path(store: &Path) -> PathBuf {
    beside(store, "-audit-seal")
}

/// Reads the seal in the separate file.
pub(crate) fn seal_file(store: &Path) -> Option<Seal> {
    Seal::from_line(
        &outrigger_files::read_to_string(&seal_path(store), outrigger_files::SETTINGS).ok()?,
    )
}

/// Reads the key of a store, if it has one yet.
pub(crate) fn read_key(store: &Path) -> std::result::Result<Option<Ed25519KeyPair>, StoreError> {
    let path = key_path(store);
    let text = match outrigger_files::read_to_string(&path, outrigger_files::SETTINGS) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(StoreError::io(&path, "read the audit's key", e)),
    };
    let seed = unhex(text.trim()).filter(|seed| seed.len() == 32);
    seed.and_then(|seed| Ed25519KeyPair::from_seed_unchecked(&seed).ok())
        .map(Some)
        .ok_or_else(|| StoreError::Decode {
            path: path.clone(),
            what: "the audit's key".into(),
            message: "it is not 32 bytes in hexadecimal digits".into(),
        })
}

/// Returns the public half of the key.
pub(crate) fn public(key: &Ed25519KeyPair) -> Vec<u8> {
    key.public_key().as_ref().to_vec()
}

/// Creates the key and the file with the last seal: a file that is missing later was removed.
fn make_key(store: &Path) -> std::result::Result<Ed25519KeyPair, StoreError> {
    let path = key_path(store);
    let mut seed = [0_u8; 32];
    SystemRandom::new().fill(&mut seed).map_err(|_| {
        StoreError::io(
            &path,
            "make the audit's key",
            std::io::Error::other("the system gives no random bytes"),
        )
    })?;
    // Written under a temporary name first, so that readers never see a partial file. A link does not replace an existing
    // file, so of two processes one creates the key and both use it.
    let temporary = beside(store, &format!("-audit-key-{}", std::process::id()));
    let io = |e| StoreError::io(&path, "make the audit's key", e);
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(io)?;
    let written = file
        .write_all(format!("{}\n", crate::hex(&seed)).as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| match std::fs::hard_link(&temporary, &path) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(e),
            _ => Ok(()),
        });
    let _ = std::fs::remove_file(&temporary);
    written.map_err(io)?;
    let key = read_key(store)?.ok_or_else(|| io(std::io::Error::other("it is gone again")))?;
    if let Err(error) = write_beside(store, &key, Seal::of_nothing()) {
        // On a full disk, for example. With the key alone the seal would count as removed forever.
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    Ok(key)
}

/// In the place of the one before. It is not synced, as a file of settings is: one is written with each seal.
fn write_beside(
    store: &Path,
    key: &Ed25519KeyPair,
    mut seal: Seal,
) -> std::result::Result<(), StoreError> {
    seal.sign(key, SealPlace::Beside);
    let path = seal_path(store);
    let temporary = beside(store, &format!("-audit-seal-{}", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(seal.line().as_bytes()))
        .and_then(|()| std::fs::rename(&temporary, &path));
    written.map_err(|e| StoreError::io(&path, "write the audit's seal", e))
}

/// Creates seals. Lives in the writer's thread.
pub(crate) struct Sealer {
    store: PathBuf,
    key: Option<Ed25519KeyPair>,
    /// The last seal, for the separate file.
    last: Option<Seal>,
}

impl Sealer {
    pub(crate) fn new(store: &Path) -> Self {
        Self {
            store: store.to_path_buf(),
            key: None,
            last: None,
        }
    }

    /// Before the first seal of this process, copies the separate file's seal into the store: the end that it covers may
    /// have been cut off since, and the file will be overwritten.
    fn open(&mut self, conn: &Connection) -> std::result::Result<(), StoreError> {
        if self.key.is_some() {
            return Ok(());
        }
        // Other sealing processes wait for this transaction, so one of them creates the key and its file.
        let Some(key) = read_key(&self.store)? else {
            self.key = Some(make_key(&self.store)?);
            return Ok(());
        };
        let sql = |e| StoreError::sqlite(&self.store, "seal the audit", e);
        match seal_file(&self.store)
            .filter(|seal| seal.is_signed_by(&public(&key), SealPlace::Beside))
        {
            Some(mut seal) if seal.seq > 0 => {
                seal.sign(&key, SealPlace::Store);
                write(conn, &seal).map_err(sql)?;
            }
            Some(_) => {}
            None => self.tell_lost(conn)?,
        }
        self.key = Some(key);
        Ok(())
    }

    fn tell_lost(&self, conn: &Connection) -> std::result::Result<(), StoreError> {
        let sql = |e| StoreError::sqlite(&self.store, "seal the audit", e);
        let at = newest(conn).map_err(sql)?.unsigned_abs();
        let record = AuditRecord {
            detail: Some("the file with the last seal was gone, or not made with the key".into()),
            ..AuditRecord::new(AuditKind::Retention, at, SEAL_LOST)
        };
        let entry = chain::Entry::new(at, record, &Redactor::default(), super::run())?;
        let mut head = chain::head(conn).map_err(sql)?;
        chain::append(conn, &mut head, &entry).map_err(sql)
    }

    /// Seals the ends of the audit and the log as of this transaction.
    pub(crate) fn seal(&mut self, conn: &Connection) -> std::result::Result<(), StoreError> {
        self.open(conn)?;
        let path = self.store.clone();
        let sql = |e| StoreError::sqlite(&path, "seal the audit", e);
        let end = chain::head(conn).map_err(sql)?;
        let seal = self.make(conn, end, false)?;
        write(conn, &seal).map_err(sql)?;
        self.last = Some(seal);
        Ok(())
    }

    /// Seals a position up to which everything is removed.
    pub(crate) fn seal_cut(
        &mut self,
        conn: &Connection,
        place: Head,
    ) -> std::result::Result<(), StoreError> {
        let path = self.store.clone();
        let seal = self.make(conn, place, true)?;
        write(conn, &seal).map_err(|e| StoreError::sqlite(&path, "seal the audit", e))
    }

    fn make(
        &mut self,
        conn: &Connection,
        place: Head,
        cut: bool,
    ) -> std::result::Result<Seal, StoreError> {
        self.open(conn)?;
        let path = self.store.clone();
        let sql = |e| StoreError::sqlite(&path, "seal the audit", e);
        let log = crate::chain::head(conn).map_err(sql)?;
        let mut seal = Seal {
            seq: place.seq,
            cut,
            hash: place.hash.to_vec(),
            log_seq: log.seq,
            log_hash: log.hash.to_vec(),
            at: newest(conn).map_err(sql)?,
            ..Seal::of_nothing()
        };
        if let Some(key) = &self.key {
            seal.sign(key, SealPlace::Store);
        }
        Ok(seal)
    }

    /// Writes the last seal to the separate file. Called when the sealed records are on disk: a file ahead of the database
    /// would be a false alarm.
    pub(crate) fn put_beside(&mut self) -> std::result::Result<(), StoreError> {
        match (self.last.take(), &self.key) {
            (Some(seal), Some(key)) => write_beside(&self.store, key, seal),
            _ => Ok(()),
        }
    }
}

/// Returns the time of the newest record.
fn newest(conn: &Connection) -> Result<i64> {
    conn.query_row(
        "SELECT coalesce(max(at), 0) FROM (SELECT at FROM audit ORDER BY seq DESC LIMIT 1)",
        [],
        |row| row.get(0),
    )
}

fn write(conn: &Connection, seal: &Seal) -> Result<()> {
    conn.prepare_cached(
        "INSERT OR IGNORE INTO audit_seals(seq, cut, hash, log_seq, log_hash, at, key, signature)
         VALUES (?,?,?,?,?,?,?,?)",
    )?
    .execute(params![
        seal.seq,
        seal.cut,
        seal.hash,
        seal.log_seq,
        seal.log_hash,
        seal.at,
        seal.key,
        seal.signature
    ])?;
    Ok(())
}

/// Returns every seal, in order; a cut comes last among those of one position.
pub(crate) fn seals(conn: &Connection) -> Result<Vec<Seal>> {
    conn.prepare(
        "SELECT seq, cut, hash, log_seq, log_hash, at, key, signature FROM audit_seals ORDER BY seq, cut",
    )?
    .query_map([], |row| {
        Ok(Seal {
            seq: row.get(0)?,
            cut: row.get(1)?,
            hash: row.get(2)?,
            log_seq: row.get(3)?,
            log_hash: row.get(4)?,
            at: row.get(5)?,
            key: row.get(6)?,
            signature: row.get(7)?,
        })
    })?
    .collect()
}

/// Converts bytes to a hash.
pub(crate) fn as_hash(bytes: &[u8]) -> Hash {
    bytes.try_into().unwrap_or(crate::chain::GENESIS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a full disk, for example: incomplete files are removed, since they would look like a removed seal.
    #[test]
    fn a_key_without_its_seal_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("s.db");
        let in_the_way = beside(&store, &format!("-audit-seal-{}", std::process::id()));
        std::fs::create_dir(&in_the_way).unwrap();
        assert!(make_key(&store).is_err());
        assert!(read_key(&store).unwrap().is_none());
        std::fs::remove_dir(&in_the_way).unwrap();
        make_key(&store).unwrap();
        assert!(seal_file(&store).is_some());
    }
}
