// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import Testing

@testable import CountersignSitePolicy

/// `inject=`, `placeholder=`, `redact=` and `challenge=none`.
@Suite struct SecretInjectionTests {
    private static func rule(_ options: String) throws -> SiteRule {
        try SiteList(files: [("a.sites", "https://a.example \(options)")]).rules[0]
    }

    @Test(
        arguments: [
            ("header:X-Api-Key:{secret}", .header(name: "X-Api-Key", prefix: "", suffix: "")),
            ("header:X-Api-Key: {secret}", .header(name: "X-Api-Key", prefix: "", suffix: "")),
            ("header:Authorization: Bearer {secret}", .header(name: "Authorization", prefix: "Bearer ", suffix: "")),
            (
                "header:Authorization:   Token  token={secret};v=2",
                .header(name: "Authorization", prefix: "Token  token=", suffix: ";v=2")
            ),
            ("basic:x-access-token:{secret}", .basic(prefix: "x-access-token:", suffix: "")),
            ("basic:{secret}:", .basic(prefix: "", suffix: ":")),
            ("basic:a{secret}b:c", .basic(prefix: "a", suffix: "b:c")),
            ("query:key={secret}", .query(name: "key")),
            ("cookie:sid={secret}", .cookie(name: "sid")),
        ] as [(String, SecretInjection.Place)])
    func thePlaceIsRead(text: String, place: SecretInjection.Place) throws {
        for after in ["", " credential=api", " # a comment"] {
            let rule = try Self.rule("inject=\(text)\(after)")
            #expect(rule.injection == SecretInjection(place))
            #expect(rule.answer.isEmpty)
        }
        let redact = if case .basic = place { "" } else { "redact=yes" }
        let rule = try Self.rule("inject=\(text) answer=certificate \(redact)")
        #expect(rule.injection?.isRedacted == !redact.isEmpty && rule.answer == [.certificate])
    }

    @Test func theWordsAroundAValueWithSpacesAreRead() throws {
        let rule = try Self.rule(
            "credential=api inject=header:Authorization: Bearer {secret} placeholder=sk-placeholder http2=no")
        #expect(rule.credential == "api" && !rule.speaksHTTP2)
        #expect(
            rule.injection
                == SecretInjection(
                    .header(name: "Authorization", prefix: "Bearer ", suffix: ""), placeholder: "sk-placeholder"))
    }

    @Test func theSignatureOfAWSIsAPlaceWithAPlaceholder() throws {
        let list = try SiteList(files: [
            ("a.sites", "https://*.amazonaws.com credential=aws inject=aws placeholder=countersign")
        ])
        let injection = try #require(list.rules[0].injection)
        #expect(injection == SecretInjection(.aws, placeholder: "countersign"))
        #expect(injection.description == "the AWS signature" && list.rules[0].answer.isEmpty)
        #expect(injection.isPlaceholder("countersign".utf8) && !injection.isPlaceholder("AKIAIOSFODNN7".utf8))
        for host in ["sts.amazonaws.com", "bucket.s3.eu-central-1.amazonaws.com"] {
            let origin = try Origin(url: "https://\(host)")
            #expect(list.verdict(for: origin) == .answer(list.rules[0]), "\(host)")
        }
    }

    @Test(
        arguments: [
            ("sk-placeholder", true), ("Bearer sk-placeholder", true), ("bearer sk-placeholder", true),
            ("BEARER sk-placeholder", true), ("Bearer SK-placeholder", false), ("Bearer  sk-placeholder", false),
            ("Bearer sk-placeholder2", false), ("Basic sk-placeholder", false), ("", false), ("Bearer ", false),
            ("xsk-placeholder", false), ("sk-placeholder, sk-placeholder", false),
        ])
    func onlyThePlaceholderItselfStandsForTheToken(value: String, stands: Bool) {
        let injection = SecretInjection(
            .header(name: "Authorization", prefix: "Bearer ", suffix: ""), placeholder: "sk-placeholder")
        #expect(injection.isPlaceholder(value.utf8) == stands)
        #expect(!SecretInjection(injection.place).isPlaceholder(value.utf8))
    }

    /// `eC1hY2Nlc3MtdG9rZW46c2stcGxhY2Vob2xkZXI=` is what `printf x-access-token:sk-placeholder | base64` writes, and
    /// `b3RoZXI6c2stcGxhY2Vob2xkZXI=` the same for `other:sk-placeholder`.
    @Test(
        arguments: [
            ("sk-placeholder", true), ("Basic sk-placeholder", true),
            ("Basic eC1hY2Nlc3MtdG9rZW46c2stcGxhY2Vob2xkZXI=", true),
            ("basic  eC1hY2Nlc3MtdG9rZW46c2stcGxhY2Vob2xkZXI=", true),
            ("eC1hY2Nlc3MtdG9rZW46c2stcGxhY2Vob2xkZXI=", false),
            ("Bearer eC1hY2Nlc3MtdG9rZW46c2stcGxhY2Vob2xkZXI=", false),
            ("Basic b3RoZXI6c2stcGxhY2Vob2xkZXI=", false), ("Basic x-access-token:sk-placeholder", false),
            ("Basic", false), ("Basic sk-placeholder sk-placeholder", false), ("", false),
        ])
    func thePlaceholderOfAPasswordMayBeEncoded(value: String, stands: Bool) {
        let injection = SecretInjection(.basic(prefix: "x-access-token:", suffix: ""), placeholder: "sk-placeholder")
        #expect(injection.isPlaceholder(value.utf8) == stands)
        #expect(!SecretInjection(injection.place).isPlaceholder(value.utf8))
    }

    @Test(
        arguments: [
            ("/", "/?key=[]"), ("/a?", "/a?key=[]"), ("/a?b", "/a?b&key=[]"), ("/a?b&", "/a?b&key=[]"),
            ("/a?b=c", "/a?b=c&key=[]"), ("/a?key=sk-placeholder", "/a?key=[]"),
            ("/a?x=1&key=sk-placeholder&y=2", "/a?x=1&key=[]&y=2"), ("/a?k%65y=sk-placeholder", "/a?k%65y=[]"),
            ("/a?key=sk%2Dplaceholder", "/a?key=[]"), ("/a?keys=1", "/a?keys=1&key=[]"),
            ("/a?Key=1", "/a?Key=1&key=[]"), ("/a?key=mine", nil), ("/a?key", nil), ("/a?key=", nil),
            ("/a?k%65y=mine", nil), ("/a?key=sk-placeholder&key=mine", nil),
            ("/a?key=mine&key=sk-placeholder", nil), ("/a?key=sk-placeholder&key=sk-placeholder", nil),
            ("/a?x=sk-placeholder", "/a?x=sk-placeholder&key=[]"),
            ("/key=sk-placeholder", "/key=sk-placeholder?key=[]"),
            ("/a?%+5key=1", "/a?%+5key=1&key=[]"), ("/a??key=sk-placeholder", "/a??key=sk-placeholder&key=[]"),
            ("/a?k%6", "/a?k%6&key=[]"),
        ] as [(String, String?)])
    func theParameterIsAddedOrReplaced(target: String, expected: String?) {
        let injection = SecretInjection(.query(name: "key"), placeholder: "sk-placeholder")
        let text: String? =
            switch injection.target(Array(target.utf8), parameter: "key") {
            case .changed(let before, let after): String(decoding: before + "[]".utf8 + after, as: UTF8.self)
            case .own: nil
            }
        #expect(text == expected)
    }

    @Test(
        arguments: [
            ("inject=aws", 19, "with which access key ID"),
            ("inject=aws placeholder=countersign redact=yes", 54, "no request contains the key"),
            ("inject=aws:key placeholder=countersign", 26, "not exactly once"),
            ("inject=AWS placeholder=countersign", 26, "names no place"),
            ("inject=aws placeholder=countersign answer=basic", 19, "in place of an answer"),
            ("inject=body:{secret}", 26, "unknown place"), ("inject={secret}", 26, "inject= names no place"),
            ("inject=header:X-A: b", 26, "not exactly once"), ("inject=query:a=x", 26, "not exactly once"),
            ("inject=query:a={secret}{secret}", 26, "not exactly once"),
            ("inject=header:X-A {secret}", 26, "names no field"), ("inject=header:: {secret}", 26, "names no field"),
            ("inject=header:X(A): {secret}", 26, "names no field"),
            ("inject=header:Host: {secret}", 26, "belongs to the proxy"),
            ("inject=header:content-length: {secret}", 26, "belongs to the proxy"),
            ("inject=header:Proxy-Authorization: {secret}", 26, "belongs to the proxy"),
            ("inject=header:Cookie: a={secret}", 26, "belongs to the proxy"),
            ("inject=header:X-A: größe{secret}", 26, "is not ASCII"),
            ("inject=query:{secret}", 26, "is not NAME="), ("inject=query:a={secret}x", 26, "is not NAME="),
            ("inject=query:a+b={secret}", 26, "is not the name of a parameter"),
            ("inject=cookie:={secret}", 26, "is not the name of a cookie"),
            ("inject=basic:{secret}", 26, "needs one colon"), ("inject=basic:a:{secret}:b", 26, "needs one colon"),
            ("inject=basic:größe:{secret}", 26, "is not ASCII"), ("inject=basic:a:", 26, "not exactly once"),
            ("inject=basic:a:{secret} redact=yes", 43, "cannot find a token that is sent as Base64"),
            ("answer=basic inject=basic:a:{secret}", 32, "in place of an answer"),
            ("inject=header:X: {secret} placeholder=short", 57, "cannot be a placeholder"),
            ("inject=query:a={secret} placeholder=has&and-more", 55, "cannot be a placeholder"),
            ("inject=cookie:a={secret} placeholder=sk-placeholder", 44, "in a field or in the query only"),
            ("inject=header:X-A: redact=yes {secret}", 26, "not exactly once"),
            ("inject=header:Date: {secret}", 26, "belongs to the proxy"),
            ("answer=basic inject=query:a={secret}", 32, "in place of an answer"),
            ("inject=header:X: {secret} intercept=no", 19, "no effect with intercept=no"),
            ("inject=header:X: {secret} inject=query:a={secret}", 45, "is given twice"),
            ("placeholder=sk-placeholder", 19, "no effect without inject="),
            ("redact=yes", 19, "no effect without inject="),
            ("challenge=basic", 29, "unknown value"), ("challenge=none", 19, "needs the one scheme"),
            ("answer=basic,bearer challenge=none", 39, "needs the one scheme"),
            ("answer=digest challenge=none", 33, "cannot be answered without a challenge"),
            ("challenge=none inject=query:a={secret}", 19, "no effect with inject="),
            (
                "session=corp cookies=a inject=cookie:b={secret}", 42, "no effect with session="
            ),
        ])
    func aFaultNamesItsPlaceAndWhatToDo(options: String, column: Int, message: String) {
        let problems = SiteListErrorTests.problems(("a.sites", "https://a.example \(options)"))
        #expect(problems.first?.message.contains(message) == true, "\(problems)")
        #expect(problems.first?.column == column && problems.first?.hint?.isEmpty == false, "\(problems)")
    }

    @Test(arguments: ["http://a.example plaintext=yes", "proxy://a.example:3128"])
    func aTokenIsInjectedOverTLSOnly(site: String) {
        for place in ["query:key={secret}", "aws placeholder=countersign"] {
            let problems = SiteListErrorTests.problems(("a.sites", "\(site) inject=\(place)"))
            #expect(problems.count == 1, "\(problems)")
        }
    }

    @Test(
        arguments: [
            ("answer=basic", "Basic realm=\"a.example\""), ("answer=bearer", "Bearer"), ("answer=ntlm", "NTLM"),
            ("answer=negotiate", "Negotiate"),
        ])
    func the401ThatHasNoChallengeStandsForOne(answer: String, challenge: String) throws {
        #expect(try Self.rule("\(answer) challenge=none").assumedChallenge == challenge)
        #expect(try Self.rule(answer).assumedChallenge == nil)
    }
}
