// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@Suite struct CodedErrorTests {
    private struct Failure: CodedError {
        enum Code { case missing, altered }

        let code: Code
        let detail: String
    }

    @Test func errorsWithTheSameCodeAreEqualWhateverTheirText() {
        #expect(Failure(code: .missing, detail: "no file") == Failure(code: .missing, detail: "no key"))
        #expect(Failure(code: .missing, detail: "no file") != Failure(code: .altered, detail: "no file"))
    }

    @Test func theDescriptionIsTheDetailAndAHintIsOptional() {
        let error: any DiagnosableError = Failure(code: .missing, detail: "no file")
        #expect("\(error)" == "no file")
        #expect(error.hint == nil)
    }
}
