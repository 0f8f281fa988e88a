//! Groups that have one member only.
//!
//! Many systems give every user a group of the same name and set the umask 002. What this group may write, only its user may.

use std::path::Path;

use super::read;

/// The size up to which the lists of users and groups are read.
const MAX_LIST: u64 = 1 << 20;

/// Whether a group is the private group of a user. Groups that only a directory service knows are not.
pub(super) fn is_private(group: u32, user: u32) -> bool {
    let list = |path| read(Path::new(path), MAX_LIST).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let Some((users, groups)) = list("/etc/passwd").zip(list("/etc/group")) else { return false };
    is_private_in(&users, &groups, group, user)
}

/// The same with the content of `/etc/passwd` and `/etc/group`. The names must be equal because a directory service may have
/// further users. Not root: where containers run as arbitrary users, all of them are in its group.
fn is_private_in(users: &str, groups: &str, group: u32, user: u32) -> bool {
    let group = group.to_string();
    let user = user.to_string();
    if user == "0" {
        return false;
    }
    // passwd: name, password, user, group, … · group: name, password, group, members.
    let mut primary = users.lines().map(fields).filter(|fields| fields.get(3) == Some(&group.as_str()));
    let (Some(owner), None) = (primary.next(), primary.next()) else { return false };
    let name = owner.first();
    let is_owned = owner.get(2) == Some(&user.as_str());
    let mut same = groups.lines().map(fields).filter(|fields| fields.get(2) == Some(&group.as_str()));
    let (Some(entry), None) = (same.next(), same.next()) else { return false };
    let mut members =
        entry.get(3).into_iter().flat_map(|list| list.split(',')).filter(|name| !name.is_empty());
    is_owned && entry.first() == name && members.all(|member| Some(&member) == name)
}

fn fields(line: &str) -> Vec<&str> {
    line.split(':').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "root:x:0:0::/root:/bin/sh\nada:x:1000:1000:Ada:/home/ada:/bin/sh\nbo:x:1001:1001::/home/bo:/bin/sh\n\
        cy:x:1002:100::/home/cy:/bin/sh\n";
    const GROUPS: &str = "root:x:0:\nusers:x:100:\nada:x:1000:\nbo:x:1001:bo,ada\n+\n";

    #[test]
    fn only_a_group_of_the_same_name_without_others_is_private() {
        for (group, user, expected) in [
            (1000, 1000, true),
            (1001, 1001, false), // Ada is in Bo's group.
            (1000, 1001, false), // a file of Bo in Ada's group
            (100, 1002, false),  // Cy has no group of his own.
            (0, 0, false),
            (7, 1000, false),
        ] {
            assert_eq!(is_private_in(USERS, GROUPS, group, user), expected, "{group} {user}");
        }
        assert!(is_private_in(USERS, "ada:x:1000:ada\n", 1000, 1000), "the user may be listed");
    }

    #[test]
    fn group_that_a_second_user_begins_with_is_shared() {
        let users = format!("{USERS}eve:x:1003:1000::/home/eve:/bin/sh\n");
        assert!(!is_private_in(&users, GROUPS, 1000, 1000));
        assert!(!is_private_in("", GROUPS, 1000, 1000));
        assert!(!is_private_in(USERS, "ada:x:1000:\ntwice:x:1000:eve\n", 1000, 1000));
    }
}
