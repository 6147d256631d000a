// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCertificates
import CountersignTestOrigin
import Foundation
import Testing

/// `certificate refresh` every five days for 400 days, with a server that shares the clock (libfaketime) and is
/// unavailable from each certificate's due date until the last fifteenth of its lifetime.
@Suite(.waiting) struct RefreshWalkTests {
    private static let day: Int64 = 86_400

    @Test func aWorkingCertificateExistsAtEveryStep() throws {
        let folder = try TemporaryFolder("walk")
        let time = try folder.write("time", "+0d\n")
        let place = try EnrolledSandbox(["days": 90], environment: try FakeTime.environment(readFrom: time))
        #expect(try place.enroll().status == 0)
        var (renewals, failures) = (0, 0)
        for step in 0...80 {
            let days = Int64(step * 5)
            try folder.write("time", "+\(days)d\n")
            func now() -> Int64 { Int64(Date().timeIntervalSince1970) + days * Self.day }
            let before = try place.leaf()
            let outage =
                RenewalSchedule(of: before).due..<(before.notAfter - (before.notAfter - before.notBefore) / 15)
            let isAway = outage.contains(now())
            let fault = ["reset", "503", "cut-before-status"][step % 3]
            try place.control(isAway ? ["days": 90, "fault": fault] : ["days": 90])

            let result = try place.refresh()
            let comment = Comment(rawValue: "day \(days): \(result.said)")
            #expect(result.status == (isAway ? 1 : 0), comment)
            let leaf = try place.leaf()
            if leaf != before { renewals += 1 }
            if result.status != 0 { failures += 1 }
            #expect(leaf.isValid(at: now()), comment)
            #expect(try place.isVerified(at: now()), comment)
            #expect(try place.identity()?.leaf == leaf, comment)
            // More than one day always remains.
            #expect(leaf.notAfter - now() > Self.day, comment)
        }
        #expect((4...6).contains(renewals), "\(renewals)")
        #expect(failures >= renewals * 3, "\(failures)")
        // The password was requested only once; the identities authenticated all renewals.
        #expect(place.server.requests("simpleenroll").count { $0.user != nil } == 1)
        #expect(place.server.requests("simplereenroll").count == renewals)
    }
}
