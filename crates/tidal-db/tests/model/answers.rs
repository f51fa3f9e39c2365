//! Makes a call on the database, and compares how it ends.

use std::fmt::Debug;

use tidal_db::{ApplyReport, CommunityMembership, Error, SignalReceipt, TidalDb, Weight};

use super::calls::{Answer, Call};
use super::compare::{Same, same, same_counts};
use super::oracle::{Applied, Refusal, Report};

/// How a call ended.
#[derive(Debug)]
pub enum Said {
    Done(Result<(), Error>),
    Membership(Result<CommunityMembership, Error>),
    Receipt(Result<SignalReceipt, Error>),
    Applied(&'static str, Result<ApplyReport, Error>),
}

impl Said {
    pub fn is_err_and(&self, is_so: impl Fn(&Error) -> bool) -> bool {
        let error = match self {
            Self::Done(result) => result.as_ref().err(),
            Self::Membership(result) => result.as_ref().err(),
            Self::Receipt(result) => result.as_ref().err(),
            Self::Applied(_, result) => result.as_ref().err(),
        };
        error.is_some_and(is_so)
    }
}

/// Makes `call`; what a redelivery delivers stands in the answer that is expected.
pub fn make(db: &TidalDb, call: &Call, answer: &Answer) -> Said {
    match call {
        Call::Join { user, community } => Said::Done(db.join_community(*user, *community)),
        Call::Quit { user, community } => Said::Done(db.quit_community(*user, *community)),
        Call::Attribute { user, name, value } => Said::Done(db.set_user_attribute(*user, name, value)),
        Call::Flush => Said::Done(db.flush()),
        Call::Signal { user, item, signal_type, weight } => {
            Said::Receipt(db.signal(*user, *item, signal_type, *weight))
        }
        Call::SignalAt { user, item, signal_type, weight, at_ns } => {
            Said::Receipt(db.signal_at(*user, *item, signal_type, *weight, *at_ns))
        }
        Call::SignalExact { user, item, signal_type, weight_nanos, at_ns } => {
            let weight = Weight::from_nanos(*weight_nanos).expect("in range");
            Said::Receipt(db.signal_exact(*user, *item, signal_type, weight, *at_ns))
        }
        Call::Leave { user } => Said::Membership(db.leave_community_layer(*user)),
        Call::Rejoin { user } => Said::Membership(db.rejoin_community_layer(*user)),
        Call::Repair { user } => Said::Membership(db.repair_community_layer(*user)),
        Call::Deliver { source, .. } | Call::Redeliver { source, .. } => {
            let Answer::Applied { first_position, events, .. } = answer else {
                panic!("{call:?} ends as a delivery does, and not with {answer:?}");
            };
            Said::Applied(source, db.apply(source, *first_position, events.clone()))
        }
    }
}

/// Compares how a call ended with how it should.
pub fn as_answered(said: Said, answer: &Answer) -> Same {
    match (said, answer) {
        (Said::Done(Ok(())), Answer::Done) => Ok(()),
        (Said::Membership(Ok(membership)), Answer::Membership(should_be) | Answer::Unchanged(should_be)) => {
            same(|| "the answer".to_owned(), &membership, should_be)
        }
        (Said::Receipt(Ok(receipt)), Answer::Receipt(should_be)) => {
            let shown = (receipt.cohorts as usize, receipt.communities as usize, receipt.withheld);
            let expected = (should_be.cohorts, should_be.communities, should_be.withheld);
            same(|| "the receipt (cohorts, communities, withheld)".to_owned(), &shown, &expected)
        }
        (
            Said::Done(Err(error)) | Said::Membership(Err(error)) | Said::Receipt(Err(error)),
            Answer::Refused(reasons),
        ) => refused(&error, reasons),
        (Said::Applied(source, result), Answer::Applied { outcome, .. }) => applied(source, result, outcome),
        (said, answer) => {
            Err(format!("the call ended with\n    {said:?}\nand should end with\n    {answer:?}"))
        }
    }
}

fn applied(source: &str, result: Result<ApplyReport, Error>, outcome: &Applied) -> Same {
    match (outcome, result) {
        (Applied::Whole(should_be), Ok(report)) => same_report(report, *should_be),
        (
            Applied::Stopped { position: should_be, reasons, report: report_should_be },
            Err(Error::Apply { source_name, position, report, cause }),
        ) => {
            same(|| "the source".to_owned(), &source_name.as_str(), &source)?;
            same(|| "the position it stopped at".to_owned(), &position, should_be)?;
            refused(&cause, reasons)?;
            same_report(*report, *report_should_be)
        }
        (Applied::Replaced { position: should_be }, Err(Error::SourceReplaced { position, .. })) => {
            same(|| "the position of the replaced source".to_owned(), &position, should_be)
        }
        // The delivery begins before the source does, so it stops at its own beginning.
        (Applied::Before, Err(Error::BeforeSource { .. })) => Ok(()),
        (Applied::Before, Err(Error::Apply { cause, .. }))
            if matches!(*cause, Error::BeforeSource { .. }) =>
        {
            Ok(())
        }
        (should_be, result) => {
            Err(format!("apply ended with\n    {result:?}\nand should end with\n    {should_be:?}"))
        }
    }
}

fn same_report(report: ApplyReport, should_be: Report) -> Same {
    let shown = (report.applied, report.skipped, report.forwarded, report.position);
    let expected = (should_be.applied, should_be.skipped, should_be.forwarded, should_be.position);
    same(|| "the report (applied, skipped, forwarded, position)".to_owned(), &shown, &expected)?;
    same_counts("the report's withheld", report.withheld, should_be.withheld)
}

/// Whether it is the disk that made a call fail.
pub fn is_of_the_disk(error: &Error) -> bool {
    match error {
        Error::Latched { .. } | Error::Storage(_) => true,
        Error::Apply { cause, .. } => is_of_the_disk(cause),
        _ => false,
    }
}

/// Why a call was refused, if it was the caller's fault.
fn refusal(error: &Error) -> Option<Refusal> {
    match error {
        Error::Weight(_) => Some(Refusal::Weight),
        Error::TooFarAhead { .. } => Some(Refusal::Ahead),
        Error::UndeclaredSignalType { .. } => Some(Refusal::SignalType),
        Error::Limit(_) => Some(Refusal::Limit),
        Error::DamagedRecord { .. } => Some(Refusal::Damaged),
        Error::PositionOverflow { .. } => Some(Refusal::Position),
        Error::Schema(_) => Some(Refusal::Cohort),
        Error::Apply { cause, .. } => refusal(cause),
        _ => None,
    }
}

/// The call was refused, for one of `reasons`.
pub fn refused(error: &Error, reasons: &[Refusal]) -> Same {
    match refusal(error) {
        Some(reason) if reasons.contains(&reason) => Ok(()),
        _ => Err(format!("the call ended with {error:?}, and should be refused for one of {reasons:?}")),
    }
}

/// The same of a call that must not succeed.
pub fn must_refuse<T: Debug>(result: Result<T, Error>, reason: Refusal) -> Same {
    match result {
        Ok(taken) => Err(format!("taken was what must be refused: {taken:?}")),
        Err(error) => refused(&error, &[reason]),
    }
}
