// SPDX-License-Identifier: Apache-2.0

/// The functions for scripts, in JavaScript (ECMAScript 5).
///
/// The program's value is a function from a request to a reply, both in JSON. Scripts cannot reach it, nor the
/// variables here. A host look-up whose result is not in the request ends the call with the name that is missing; the
/// caller then repeats the call with the result. So a script never waits, and nothing but text goes in and out.
///
///     {"url": "http://a.example/", "host": "a.example", "now": 0, "offset": 60,
///      "addresses": {"b.example": ["192.0.2.1"]}, "own": ["192.0.2.7"], "isFull": false}
///
///     {"result": "DIRECT", "usesClock": false, "alerts": []}    {"lookUp": "b.example"}    {"lookUpOwn": true}
///     {"noFunction": true}
///
/// `offset` is the local time's distance from UTC in minutes. If `isFull`, names that are not among the addresses have
/// none. A request without a URL prepares for running the script itself, which may make look-ups, too. Its reply is
/// `{}`; the empty text asks afterwards which look-up is missing, and the reply is `{}` again if none is. A result that
/// is not a string counts as an empty one, which browsers read as `DIRECT`.
enum Prelude {
    static let program = #"""
        (function (global) {
        "use strict";
        var parse = JSON.parse, stringify = JSON.stringify, SystemDate = Date, floor = Math.floor;
        var own = Object.prototype.hasOwnProperty, push = Array.prototype.push, Pattern = RegExp;
        var has = own.call.bind(own);
        var request = {}, missing = null, usesClock = false, alerts = [];
        var patterns = Object.create(null), patternCount = 0;

        // MARK: Requests

        function answer(text) {
          if (text === "") return missing === null ? "{}" : missing;
          request = parse(text); missing = null; usesClock = false; alerts = [];
          if (typeof request.url !== "string") return "{}";
          var name = typeof global.FindProxyForURLEx === "function" ? "FindProxyForURLEx" : "FindProxyForURL";
          var find = global[name], result;
          if (typeof find !== "function") return stringify({noFunction: true});
          try {
            result = find(request.url, request.host);
          } catch (error) {
            if (missing === null) throw error;
          }
          // Also if the script has caught what ended it.
          if (missing !== null) return missing;
          if (typeof result !== "string") result = "";
          return ascii(stringify({result: result, usesClock: usesClock, alerts: alerts}));
        }

        // The engine's strings are UTF-16, and not always valid.
        function ascii(json) {
          return json.replace(/[^ -~]/g, function (unit) {
            return "\\u" + ("000" + unit.charCodeAt(0).toString(16)).slice(-4);
          });
        }

        function needs(reply) {
          if (missing === null) missing = ascii(stringify(reply));
          throw new Error("a host look-up is missing");
        }

        // MARK: Addresses

        function bytes4(text) {
          var parts = text.split("."), bytes = [], i;
          if (parts.length !== 4) return null;
          for (i = 0; i < 4; i++) {
            if (!/^[0-9]{1,3}$/.test(parts[i]) || +parts[i] > 255) return null;
            bytes[i] = +parts[i];
          }
          return bytes;
        }

        function words6(text) {
          var words = [], i, quad, tail = text.lastIndexOf(":") + 1;
          if (text.indexOf(".") >= 0) {
            quad = bytes4(text.slice(tail));
            if (quad === null || tail === 0) return null;
            text = text.slice(0, tail) + (quad[0] * 256 + quad[1]).toString(16) + ":" +
              (quad[2] * 256 + quad[3]).toString(16);
          }
          var halves = text.split("::");
          if (halves.length > 2 || text.indexOf(":") < 0) return null;
          var front = halves[0] === "" ? [] : halves[0].split(":");
          var back = halves.length < 2 || halves[1] === "" ? [] : halves[1].split(":");
          var gap = 8 - front.length - back.length;
          if (halves.length === 2 ? gap < 1 : gap !== 0) return null;
          for (i = 0; i < 8; i++) {
            var word = i < front.length ? front[i] : i < front.length + gap ? "0" : back[i - front.length - gap];
            if (!/^[0-9a-fA-F]{1,4}$/.test(word)) return null;
            words[i] = parseInt(word, 16);
          }
          return words;
        }

        function is4(text) { return bytes4(text) !== null; }
        function is6(text) { return words6(text) !== null; }

        // The addresses of a name, or the address itself.
        function addresses(host) {
          var name = String(host).toLowerCase();
          if (is4(name) || is6(name)) return [name];
          if (name === "") return [];
          var known = request.addresses;
          if (known && has(known, name)) return known[name];
          if (!request.isFull) needs({lookUp: name});
          return [];
        }

        function ownAddresses() {
          if (!request.own) needs({lookUpOwn: true});
          return request.own;
        }

        function first4(list) {
          for (var i = 0; i < list.length; i++) if (is4(list[i])) return list[i];
          return null;
        }

        // The bits of an address, as a list of numbers of `size` bits.
        function bits(text) {
          var four = bytes4(text);
          return four !== null ? {size: 8, parts: four} : {size: 16, parts: words6(text)};
        }

        function mapped(four) {
          return {size: 16, parts: [0, 0, 0, 0, 0, 65535, four[0] << 8 | four[1], four[2] << 8 | four[3]]};
        }

        // Between the families, IPv4 addresses count as ::ffff:0:0/96.
        function hasPrefix(address, prefix, length) {
          var a = bits(address), b = bits(prefix);
          if (a.parts === null || b.parts === null || length > b.size * b.parts.length) return false;
          if (a.size < b.size) a = mapped(a.parts);
          if (a.size > b.size) {
            b = mapped(b.parts);
            length += 96;
          }
          for (var i = 0; length > 0; i++, length -= a.size) {
            var kept = length >= a.size ? a.size : length, shift = a.size - kept;
            if (a.parts[i] >> shift !== b.parts[i] >> shift) return false;
          }
          return true;
        }

        // MARK: Times

        var DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
        var MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

        // The parameters without a final "GMT", and the time now in the zone that they mean.
        function timed(parameters) {
          usesClock = true;
          var list = [], i, isUTC, offset;
          for (i = 0; i < parameters.length; i++) list[i] = parameters[i];
          isUTC = list.length > 0 && String(list[list.length - 1]).toUpperCase() === "GMT";
          if (isUTC) list.pop();
          offset = isUTC ? 0 : request.offset;
          return {list: list, now: new SystemDate(request.now + offset * 60000)};
        }

        function compare(a, b) {
          for (var i = 0; i < a.length; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
          return 0;
        }

        // Whether start <= now <= end, or that after the end of the year, month, week or day.
        function isBetween(start, now, end) {
          if (compare(start, end) <= 0) return compare(start, now) <= 0 && compare(now, end) <= 0;
          return compare(start, now) <= 0 || compare(now, end) <= 0;
        }

        function dayOf(name) { return DAYS.indexOf(String(name).toUpperCase()); }

        // A parameter of dateRange: what it is, from the most significant on, and its value.
        function datePart(value) {
          var month = MONTHS.indexOf(String(value).toUpperCase());
          if (month >= 0) return {kind: 1, value: month};
          var number = +value;
          if (!(number >= 1) || floor(number) !== number) return null;
          return number > 31 ? {kind: 0, value: number} : {kind: 2, value: number};
        }

        function sorted(parts) {
          return parts.slice().sort(function (a, b) { return a.kind - b.kind; });
        }

        function values(parts) { return parts.map(function (part) { return part.value; }); }
        function kinds(parts) { return parts.map(function (part) { return part.kind; }).join(); }

        // MARK: Functions for scripts

        var functions = {
          isPlainHostName: function (host) { return !/[.:]/.test(String(host)); },

          dnsDomainIs: function (host, domain) {
            host = String(host);
            domain = String(domain);
            return host.length >= domain.length && host.slice(host.length - domain.length) === domain;
          },

          localHostOrDomainIs: function (host, full) {
            host = String(host);
            full = String(full);
            return host === full || full.slice(0, host.length + 1) === host + ".";
          },

          dnsDomainLevels: function (host) { return String(host).split(".").length - 1; },

          isResolvable: function (host) { return first4(addresses(host)) !== null; },

          dnsResolve: function (host) { return first4(addresses(host)); },

          myIpAddress: function () {
            var address = first4(ownAddresses());
            return address === null ? "127.0.0.1" : address;
          },

          // As lenient as in browsers: a part that is missing or no number is 0.
          convert_addr: function (address) {
            var parts = String(address).split(".");
            return parts[0] << 24 | (parts[1] & 255) << 16 | (parts[2] & 255) << 8 | parts[3] & 255;
          },

          isInNet: function (host, pattern, mask) {
            var address = first4(addresses(host));
            if (address === null || !is4(String(pattern)) || !is4(String(mask))) return false;
            mask = functions.convert_addr(mask);
            return (functions.convert_addr(address) & mask) === (functions.convert_addr(pattern) & mask);
          },

          // In browsers, a regular expression with "." for itself, "*" and "?". Everything else has its meaning in
          // regular expressions, which scripts rely on: "(*.a.example|a.example)".
          shExpMatch: function (text, pattern) {
            pattern = String(pattern);
            if (!patterns[pattern]) {
              if (patternCount++ >= 5000) {
                patterns = Object.create(null);
                patternCount = 0;
              }
              var translated = pattern.replace(/\./g, "\\.").replace(/\*/g, ".*").replace(/\?/g, ".");
              patterns[pattern] = new Pattern("^" + translated + "$");
            }
            return patterns[pattern].test(String(text));
          },

          weekdayRange: function () {
            var time = timed(arguments), start = dayOf(time.list[0]);
            var end = time.list.length > 1 ? dayOf(time.list[1]) : start;
            if (start < 0 || end < 0 || time.list.length > 2) return false;
            return isBetween([start], [time.now.getUTCDay()], [end]);
          },

          dateRange: function () {
            var time = timed(arguments), parts = time.list.map(datePart), half = parts.length / 2;
            if (parts.length === 0 || parts.indexOf(null) >= 0) return false;
            var now = [time.now.getUTCFullYear(), time.now.getUTCMonth(), time.now.getUTCDate()];
            function same(part) { return now[part.kind]; }
            var start = parts.slice(0, half), end = parts.slice(half);
            if (floor(half) === half && kinds(sorted(start)) === kinds(sorted(end))) {
              start = sorted(start);
              return isBetween(values(start), start.map(same), values(sorted(end)));
            }
            return compare(values(parts), parts.map(same)) === 0;
          },

          timeRange: function () {
            var time = timed(arguments), list = time.list.map(Number), half = list.length / 2;
            var now = [time.now.getUTCHours(), time.now.getUTCMinutes(), time.now.getUTCSeconds()];
            if (list.length === 1) return now[0] === list[0];
            if (list.length !== 2 && list.length !== 4 && list.length !== 6) return false;
            return isBetween(list.slice(0, half), now.slice(0, half), list.slice(half));
          },

          alert: function (text) {
            if (alerts.length < 10) push.call(alerts, String(text).slice(0, 200));
          },

          // Microsoft's extensions for IPv6

          isResolvableEx: function (host) { return addresses(host).length > 0; },

          dnsResolveEx: function (host) { return addresses(host).join(";"); },

          myIpAddressEx: function () { return ownAddresses().join(";"); },

          isInNetEx: function (host, prefix) {
            var parts = String(prefix).split("/");
            if (parts.length !== 2 || !/^[0-9]{1,3}$/.test(parts[1])) return false;
            return addresses(host).some(function (address) { return hasPrefix(address, parts[0], +parts[1]); });
          },

          // IPv6 before IPv4, and each from the lowest on.
          sortIpAddressList: function (list) {
            var all = String(list).split(";").map(function (text) { return text.trim(); });
            if (!all.every(function (text) { return is4(text) || is6(text); })) return false;
            return all.sort(function (a, b) {
              a = bits(a);
              b = bits(b);
              return a.size !== b.size ? b.size - a.size : compare(a.parts, b.parts);
            }).join(";");
          },

          getClientVersion: function () { return "1.0"; }
        };

        // The clock of the request, for scripts that ask for the time themselves.
        function Clock(year, month, day, hours, minutes, seconds, milliseconds) {
          function given(value, otherwise) { return value === undefined ? otherwise : value; }
          var time, count = arguments.length;
          if (count === 0) {
            usesClock = true;
            time = new SystemDate(request.now);
          } else if (count === 1) {
            time = new SystemDate(year);
          } else {
            time = new SystemDate(
              year, month, given(day, 1), given(hours, 0), given(minutes, 0), given(seconds, 0),
              given(milliseconds, 0));
          }
          return this instanceof Clock ? time : time.toString();
        }
        Clock.prototype = SystemDate.prototype;
        Clock.prototype.constructor = Clock;
        Clock.parse = SystemDate.parse;
        Clock.UTC = SystemDate.UTC;
        Clock.now = function () { usesClock = true; return request.now; };
        global.Date = Clock;

        Object.keys(functions).forEach(function (name) { global[name] = functions[name]; });
        global.console = {};
        ["debug", "error", "info", "log", "warn"].forEach(function (name) { global.console[name] = functions.alert; });
        ["Duktape", "WebAssembly", "Atomics", "SharedArrayBuffer"].forEach(function (name) {
          delete global[name];
        });
        return answer;
        })(this)
        """#
}
