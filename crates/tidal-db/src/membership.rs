//! Joins, quits and attributes: what a user takes part in. They are stored whether or not the user
//! left the community layer, and never touch the leave record.

use tidal_entities::{
    LogEntry, attribute_key, check_attribute_name, check_attribute_value, encode_attribute, encode_joined,
    joined_key,
};
use tidal_storage::Partition;

use crate::log_state::{Origin, Ticket};
use crate::{Error, Result, TidalDb};

/// The most communities that one user may be in: each of them costs every signal an update.
pub const MAX_COMMUNITIES_PER_USER: usize = 4096;

/// The most attributes that one user may have.
pub const MAX_ATTRIBUTES_PER_USER: usize = 256;

impl TidalDb {
    /// Makes `user_id` a member of `community`. On disk when this returns `Ok`; joining again
    /// changes nothing. While the user is away the join is kept and counts after the rejoin.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyCommunities`] beyond [`MAX_COMMUNITIES_PER_USER`]; [`Error::Storage`],
    /// [`Error::Latched`] and [`Error::Closed`] if it could not be written.
    pub fn join_community(&self, user_id: u64, community: u64) -> Result<()> {
        let ticket = self.stage_join(user_id, community, self.now_ns(), None)?;
        self.inner.log.wait_durable(ticket)?;
        self.inner.log.wait_for_checkpoint()
    }

    /// Ends the membership of `user_id` in `community`; what was forwarded stays. On disk when this
    /// returns `Ok`; quitting what one is not in changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`], [`Error::Latched`] and [`Error::Closed`] if it could not be written.
    pub fn quit_community(&self, user_id: u64, community: u64) -> Result<()> {
        let ticket = self.stage_quit(user_id, community, self.now_ns(), None)?;
        self.inner.log.wait_durable(ticket)?;
        self.inner.log.wait_for_checkpoint()
    }

    /// The communities that `user_id` is in, in order of their ids; also while away.
    #[must_use]
    pub fn communities_of(&self, user_id: u64) -> Vec<u64> {
        self.inner.community_membership.communities_of(user_id)
    }

    /// Sets an attribute, by which cohorts are made. Any name is taken, also one that no cohort
    /// uses yet. On disk when this returns `Ok`.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for a name that is empty, longer than 255 bytes or holds `=`, or a value longer
    /// than 1024 bytes; [`Error::TooManyAttributes`] beyond [`MAX_ATTRIBUTES_PER_USER`]; [`Error::Storage`], [`Error::Latched`] and [`Error::Closed`] if it could not be
    /// written.
    pub fn set_user_attribute(&self, user_id: u64, name: &str, value: &str) -> Result<()> {
        let ticket = self.stage_attribute(user_id, name, value, self.now_ns(), None)?;
        self.inner.log.wait_durable(ticket)?;
        self.inner.log.wait_for_checkpoint()
    }

    /// The value of an attribute of `user_id`.
    #[must_use]
    pub fn user_attribute(&self, user_id: u64, name: &str) -> Option<String> {
        self.inner.profiles.attribute(user_id, name)
    }

    pub(crate) fn stage_join(
        &self,
        user_id: u64,
        community: u64,
        at_ns: u64,
        origin: Option<&Origin<'_>>,
    ) -> Result<Ticket> {
        let inner = &self.inner;
        let edit = inner.profiles.edit(user_id);
        if inner.community_membership.contains(user_id, community) {
            return self.stage_nothing(at_ns, origin);
        }
        if inner.community_membership.communities_len(user_id) >= MAX_COMMUNITIES_PER_USER {
            inner.log.check_writable()?;
            return Err(Error::TooManyCommunities { user_id, community, limit: MAX_COMMUNITIES_PER_USER });
        }
        let ((), ticket) = inner.log.stage(origin, |staging| {
            let sequence = staging.append(&LogEntry::Join { user: user_id, community, at_ns }, at_ns)?;
            let key = joined_key(user_id, community);
            staging.put(Partition::Users, &key, &encode_joined(&key, sequence));
            staging.fingerprint().add_membership(user_id, community);
            Ok(())
        })?;
        inner.community_membership.join(user_id, community);
        edit.change(|_| ());
        Ok(ticket)
    }

    pub(crate) fn stage_quit(
        &self,
        user_id: u64,
        community: u64,
        at_ns: u64,
        origin: Option<&Origin<'_>>,
    ) -> Result<Ticket> {
        let inner = &self.inner;
        let edit = inner.profiles.edit(user_id);
        if !inner.community_membership.contains(user_id, community) {
            return self.stage_nothing(at_ns, origin);
        }
        let ((), ticket) = inner.log.stage(origin, |staging| {
            staging.append(&LogEntry::Quit { user: user_id, community, at_ns }, at_ns)?;
            staging.delete(Partition::Users, &joined_key(user_id, community));
            staging.fingerprint().remove_membership(user_id, community);
            Ok(())
        })?;
        inner.community_membership.quit(user_id, community);
        edit.change(|_| ());
        Ok(ticket)
    }

    pub(crate) fn stage_attribute(
        &self,
        user_id: u64,
        name: &str,
        value: &str,
        at_ns: u64,
        origin: Option<&Origin<'_>>,
    ) -> Result<Ticket> {
        check_attribute_name(name)?;
        check_attribute_value(value)?;
        let inner = &self.inner;
        let edit = inner.profiles.edit(user_id);
        let before = edit.attribute(name).cloned();
        if before.as_deref() == Some(value) {
            return self.stage_nothing(at_ns, origin);
        }
        if before.is_none() && edit.attributes_len() >= MAX_ATTRIBUTES_PER_USER {
            inner.log.check_writable()?;
            let name = name.to_owned();
            return Err(Error::TooManyAttributes { user_id, name, limit: MAX_ATTRIBUTES_PER_USER });
        }
        let entry =
            LogEntry::SetAttribute { user: user_id, at_ns, name: name.to_owned(), value: value.to_owned() };
        let ((), ticket) = inner.log.stage(origin, |staging| {
            let sequence = staging.append(&entry, at_ns)?;
            let key = attribute_key(user_id, name);
            staging.put(Partition::Users, &key, &encode_attribute(&key, sequence, value));
            if let Some(before) = &before {
                staging.fingerprint().remove_attribute(user_id, name, before);
            }
            staging.fingerprint().add_attribute(user_id, name, value);
            Ok(())
        })?;
        edit.change(|attributes| {
            attributes.insert(name.to_owned(), value.to_owned());
        });
        Ok(ticket)
    }

    /// A change that changes nothing is as durable as what it repeats, and moves a source on.
    pub(crate) fn stage_nothing(&self, at_ns: u64, origin: Option<&Origin<'_>>) -> Result<Ticket> {
        let ((), ticket) = self.inner.log.stage(origin, |staging| {
            if origin.is_some() {
                staging.see_time(at_ns);
            }
            Ok(())
        })?;
        Ok(ticket)
    }
}
