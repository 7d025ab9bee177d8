"""Rows of the tables of TPC-H, the same each time. Sizes have other proportions than TPC-H's, and values that queries
look for are more frequent, so that every query finds rows in few thousand."""
import random
from datetime import date, timedelta

TABLES = {
    "region": "r_regionkey int, r_name string, r_comment string",
    "nation": "n_nationkey int, n_name string, n_regionkey int, n_comment string",
    "supplier": "s_suppkey int, s_name string, s_address string, s_nationkey int, s_phone string, "
                "s_acctbal decimal(12,2), s_comment string",
    "part": "p_partkey int, p_name string, p_mfgr string, p_brand string, p_type string, p_size int, "
            "p_container string, p_retailprice decimal(12,2), p_comment string",
    "partsupp": "ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost double, ps_comment string",
    "customer": "c_custkey int, c_name string, c_address string, c_nationkey int, c_phone string, "
                "c_acctbal decimal(12,2), c_mktsegment string, c_comment string",
    "orders": "o_orderkey int, o_custkey int, o_orderstatus string, o_totalprice decimal(12,2), o_orderdate date, "
              "o_orderpriority string, o_clerk string, o_shippriority int, o_comment string",
    "lineitem": "l_orderkey int, l_partkey int, l_suppkey int, l_linenumber int, l_quantity double, "
                "l_extendedprice decimal(12,2), l_discount decimal(12,2), l_tax decimal(12,2), l_returnflag string, "
                "l_linestatus string, l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct string, "
                "l_shipmode string, l_comment string",
}

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
           ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4),
           ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3),
           ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1))
WORDS = ("almond", "azure", "blush", "coral", "cream", "forest", "frosted", "green", "honeydew", "ivory", "khaki",
         "lemon", "linen", "mint", "navy", "olive", "orchid", "peru", "plum", "rose")
TEXT = ("accounts", "carefully", "deposits", "final", "furiously", "ideas", "packages", "pending", "quickly", "regular",
        "requests", "special", "theodolites", "unusual")
TYPES = (("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
         ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"), ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"))
CONTAINERS = (("SM", "MED", "LG", "JUMBO", "WRAP"), ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"))
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
MODES = ("AIR", "AIR", "MAIL", "SHIP", "REG AIR", "RAIL", "TRUCK", "FOB")
INSTRUCTIONS = ("DELIVER IN PERSON", "DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
SUPPLIERS = 75  # three in each nation
TODAY = date(1995, 6, 17)


def tables(orders, seed=1):
    """Returns the rows of all tables, values as texts, for a number of orders."""
    r = random.Random(seed)
    money = lambda cents: "%d.%02d" % divmod(cents, 100) if cents >= 0 else "-" + money(-cents)
    text = lambda: " ".join(r.choices(TEXT, k=4))
    phone = lambda nation: "%d-%03d-%03d-%04d" % (nation + 10, r.randint(100, 999), r.randint(100, 999),
                                                  r.randint(1000, 9999))
    likely = lambda chance, often, all_of: r.choice(often) if r.random() < chance else all_of()
    parts, customers = orders // 4, orders // 10
    out = {name: [] for name in TABLES}
    out["region"] = [(n, name, text()) for n, name in enumerate(REGIONS)]
    out["nation"] = [(n, name, region, text()) for n, (name, region) in enumerate(NATIONS)]
    for s in range(1, SUPPLIERS + 1):
        comment = "Customer quickly Complaints" if s % 10 == 0 else text()
        out["supplier"].append((s, "Supplier#%09d" % s, text(), s % 25, phone(s % 25),
                                money(r.randint(-99999, 999999)), comment))
    prices, sellers = {}, {}
    for p in range(1, parts + 1):
        name = [likely(0.15, ("forest",), lambda: r.choice(WORDS))] + r.sample(WORDS, 4)
        brand = likely(0.6, ("Brand#12", "Brand#23", "Brand#34", "Brand#45"),
                       lambda: "Brand#%d%d" % (r.randint(1, 5), r.randint(1, 5)))
        kind = likely(0.2, ("ECONOMY ANODIZED STEEL", "PROMO BURNISHED COPPER", "MEDIUM POLISHED TIN"),
                      lambda: " ".join(map(r.choice, TYPES)))
        size = likely(0.5, (3, 9, 14, 15, 49), lambda: r.randint(1, 50))
        container = likely(0.5, ("SM CASE", "SM BOX", "MED BAG", "MED BOX", "LG CASE", "LG BOX"),
                           lambda: " ".join(map(r.choice, CONTAINERS)))
        prices[p] = 90000 + (p // 10) % 20001 + 100 * (p % 1000)
        out["part"].append((p, " ".join(name), "Manufacturer#%s" % brand[6], brand, kind, size, container,
                            money(prices[p]), text()))
        sellers[p] = r.sample(range(1, SUPPLIERS + 1), 4)
        for s in sellers[p]:
            out["partsupp"].append((p, s, r.randint(1, 9999), money(r.randint(100, 100000)), text()))
    for c in range(1, customers + 1):
        nation = r.randrange(25)
        out["customer"].append((c, "Customer#%09d" % c, text(), nation, phone(nation),
                                money(r.randint(-99999, 999999)), r.choice(SEGMENTS), text()))
    buyers = [c for c in range(1, customers + 1) if c % 3]  # A third never buys.
    for o in range(1, orders + 1):
        placed = date(1992, 1, 1) + timedelta(r.randrange(2406 - 151))
        large = o % 50 == 0
        lines, total = [], 0
        for n in range(1, (7 if large else r.randint(1, 7)) + 1):
            p = r.randint(1, parts)
            quantity = r.randint(44, 50) if large else r.randint(1, 50)
            discount, tax = r.randint(0, 10), r.randint(0, 8)
            cents = quantity * prices[p]
            shipped = placed + timedelta(r.randint(1, 121))
            promised = placed + timedelta(r.randint(30, 90))
            received = shipped + timedelta(r.randint(1, 30))
            flag = r.choice("RA") if received <= TODAY else "N"
            status = "O" if shipped > TODAY else "F"
            total += cents * (100 - discount) * (100 + tax) // 10000
            lines.append((o, p, r.choice(sellers[p]), n, quantity, money(cents), money(discount), money(tax), flag,
                          status, shipped, promised, received, r.choice(INSTRUCTIONS), r.choice(MODES), text()))
        states = {line[9] for line in lines}
        out["orders"].append((o, r.choice(buyers), states.pop() if len(states) == 1 else "P", money(total), placed,
                              r.choice(PRIORITIES), "Clerk#%09d" % r.randint(1, 1000), 0, text()))
        out["lineitem"] += lines
    return out
