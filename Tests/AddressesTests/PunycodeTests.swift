// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignAddresses

@Suite struct PunycodeTests {
    /// RFC 3492 §7.1, without the Korean sample, which is longer than a label.
    static let samples: [(text: String, encoded: String)] = [
        ("ليهمابتكلموشعربي؟", "egbpdaj6bu4bxfgehfvwxn"),
        ("他们为什么不说中文", "ihqwcrb4cv8a8dqg056pqjye"),
        ("他們爲什麽不說中文", "ihqwctvzc91f659drss3x8bo0yb"),
        ("Pročprostěnemluvíčesky", "Proprostnemluvesky-uyb24dma41a"),
        ("למההםפשוטלאמדבריםעברית", "4dbcagdahymbxekheh6e0a7fei0b"),
        ("यहलोगहिन्दीक्योंनहींबोलसकतेहैं", "i1baa7eci9glrd9b2ae1bj0hfcgg6iyaf8o0a1dig0cd"),
        ("なぜみんな日本語を話してくれないのか", "n8jok5ay5dzabd5bym9f0cm5685rrjetr6pdxa"),
        ("почемужеонинеговорятпорусски", "b1abfaaepdrnnbgefbadotcwatmq2g4l"),
        ("PorquénopuedensimplementehablarenEspañol", "PorqunopuedensimplementehablarenEspaol-fmd56a"),
        ("TạisaohọkhôngthểchỉnóitiếngViệt", "TisaohkhngthchnitingVit-kjcr8268qyxafd2f1b9g"),
        ("3年B組金八先生", "3B-ww4c5e180e575a65lsy2b"),
        ("安室奈美恵-with-SUPER-MONKEYS", "-with-SUPER-MONKEYS-pc58ag80a8qai00g7n9n"),
        ("Hello-Another-Way-それぞれの場所", "Hello-Another-Way--fc4qua05auwb3674vfr0b"),
        ("ひとつ屋根の下2", "2-u9tlzr9756bt3uc0v"),
        ("MajiでKoiする5秒前", "MajiKoi5-783gue6qz075azm5e"),
        ("パフィーdeルンバ", "de-jg4avhby1noc0d"),
        ("そのスピードで", "d9juau41awczczp"),
    ]

    @Test(arguments: samples)
    func samplesOfTheRFCGoBothWays(text: String, encoded: String) {
        #expect(Punycode.encode(Array(text.unicodeScalars)) == encoded)
        #expect(Punycode.decode(encoded).map { String(String.UnicodeScalarView($0)) } == text)
    }

    @Test(arguments: ["", "abc-", "-abc", "ab c", "!!", "9999999999", "zzzzzzzzzzzz", "é", "99999", "kva+", "bcher-kv"])
    func whatIsNotPunycodeIsNil(_ input: String) {
        #expect(Punycode.decode(input) == nil)
    }

    @Test func moreThanALabelIsRefused() {
        #expect(Punycode.encode(Array(repeating: "a", count: 63)) != nil)
        #expect(Punycode.encode(Array(repeating: "a", count: 64)) == nil)
        #expect(Punycode.decode(String(repeating: "a", count: 64)) == nil)
    }

    @Test func surrogatesAndPointsPastUnicodeAreRefused() {
        #expect(Punycode.decode("ib9b") == nil, "U+D800")
        #expect(Punycode.decode("en32g") == nil, "U+110000")
        for value in [0xD7FF, 0xE000, 0x10FFFF] {
            let scalar = Unicode.Scalar(UInt32(value)).map { [$0] } ?? []
            #expect(Punycode.encode(scalar).flatMap(Punycode.decode) == scalar)
        }
    }
}
