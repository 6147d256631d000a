// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The groups that systems create for one user each, with the user's name.
enum PrivateGroup {
    /// Whether `owner` is the only member of `group`: it is the owner's primary group, has the owner's name, lists no
    /// other user, and is not the primary group of another user in `/etc/passwd`.
    ///
    /// A directory service need not list its users. The name distinguishes a private group there from one like `users`.
    static func isPrivate(group: gid_t, owner: uid_t) -> Bool {
        guard let account = SystemAccounts.user(owner), account.group == group,
            let found = SystemAccounts.group(group), found.name == account.name,
            found.members.allSatisfy({ $0 == account.name })
        else { return false }
        let accounts = (try? HomeFile(path: "/etc/passwd").readIfThere(upTo: Home.fileLimitBytes)) ?? []
        return isPrivate(group: group, name: account.name, accounts: String(decoding: accounts, as: UTF8.self))
    }

    /// Whether no line of a passwd(5) file has `group` as the primary group of another user.
    static func isPrivate(group: gid_t, name: String, accounts: String) -> Bool {
        accounts.split(separator: "\n").allSatisfy { line in
            let fields = line.split(separator: ":", omittingEmptySubsequences: false)
            return fields.count < 4 || gid_t(fields[3]) != group || fields[0] == name
        }
    }
}

/// The users and groups that the system knows, from all of its sources.
enum SystemAccounts {
    /// The name of a user, or the number if it has none.
    static func userName(of number: uid_t) -> String { user(number)?.name ?? String(number) }

    /// The name of a group, or the number if it has none.
    static func groupName(of number: gid_t) -> String { group(number)?.name ?? String(number) }

    static func user(_ number: uid_t) -> (name: String, group: gid_t)? {
        lookedUp { start, size in
            var entry = passwd()
            var found: UnsafeMutablePointer<passwd>?
            let failure = getpwuid_r(number, &entry, start, size, &found)
            return (found.flatMap { $0.pointee.pw_name.map { (String(cString: $0), entry.pw_gid) } }, failure)
        }
    }

    static func group(_ number: gid_t) -> (name: String, members: [String])? {
        lookedUp { start, size in
            var entry = Glibc.group()
            var found: UnsafeMutablePointer<Glibc.group>?
            let failure = getgrgid_r(number, &entry, start, size, &found)
            guard let name = found?.pointee.gr_name else { return (nil, failure) }
            var members: [String] = []
            var next = entry.gr_mem
            while let member = next?.pointee {
                members.append(String(cString: member))
                next = next?.successor()
            }
            return ((String(cString: name), members), failure)
        }
    }

    /// Calls `body` with buffers of increasing size until it does not fail with ERANGE.
    private static func lookedUp<Entry>(
        _ body: (_ start: UnsafeMutablePointer<CChar>, _ size: Int) -> (Entry?, failure: Int32)
    ) -> Entry? {
        var bytes = 1 << 10
        while bytes <= 1 << 20 {
            let (entry, failure) = withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes) { buffer in
                buffer.baseAddress.map { body($0, buffer.count) } ?? (nil, ENOMEM)
            }
            switch failure {
            case ERANGE: bytes *= 4
            case EINTR: continue
            default: return entry
            }
        }
        return nil
    }
}
