package org.apache.spark.scheduler.bellows

import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Random

import com.fasterxml.jackson.databind.JsonNode

/** Executors are divided among stages as the pool does it. Argument: a file of its vectors. */
object DivisionTest {
  def main(args: Array[String]): Unit = {
    val lines = Files.readAllLines(Paths.get(args(0))).asScala
    for ((line, n) <- lines.zipWithIndex) {
      val v = Json.parse(line)
      val (is, should) = (divided(v), numbers(v.path("granted")))
      require(is == should, s"vector ${n + 1}: granted $is, should be $should: $line")
    }
    require(lines.size > 100, s"${lines.size} vectors")
    val random = new Random(3)
    for (n <- 1 to Divisions) {
      val most = Seq(3, 1000, Division.MostWeight.toInt)(random.nextInt(3))
      val claims = IndexedSeq.fill(random.nextInt(12)) {
        Division.Claim(1L + random.nextInt(most), random.nextInt(7), random.nextInt(3))
      }
      val executors = random.nextInt(20)
      val (is, should) = (Division.divide(executors, claims).toIndexedSeq, slowly(executors, claims))
      require(is == should, s"division $n: of $executors executors for $claims, granted $is, should be $should")
    }
    println(s"${lines.size} and $Divisions divisions")
  }

  private val Divisions = 20000

  /** As Division.divide: whoever would be granted more than it can use gets what it can use, and leaves the division. */
  private def slowly(executors: Int, claims: IndexedSeq[Division.Claim]): IndexedSeq[Int] = {
    val granted = claims.map(_.demand.min(executors)).toArray
    var open: IndexedSeq[Int] = claims.indices
    while (true) {
      val rest = executors - claims.indices.filterNot(open.contains).map(granted(_)).sum
      if (open.map(granted(_)).sum <= rest) return granted.toIndexedSeq
      val weights = open.map(claims(_).weight).sum
      val share = (i: Int) => BigInt(claims(i).weight) * rest
      open.find(i => share(i) >= BigInt(granted(i)) * weights) match {
        case Some(full) => open = open.filterNot(_ == full)
        case None =>
          open.foreach(i => granted(i) = (share(i) / weights).toInt)
          val over = (i: Int) => share(i) % weights
          val next = open.filter(over(_) > 0)
            .sortBy(i => (claims(i).held <= granted(i), -(over(i) << 32) / weights, i))
          next.take(rest - open.map(granted(_)).sum).foreach(granted(_) += 1)
          return granted.toIndexedSeq
      }
    }
    Nil.toIndexedSeq
  }

  private def divided(v: JsonNode): IndexedSeq[Int] = {
    val stages = v.path("stages").elements().asScala.toIndexedSeq
    val left = stages.map(_.path("left").asInt)
    val next = stages.map(s => numbers(s.path("next")))
    val below = Division.below(left, stages.indices.map(n => stages.indices.filter(next(_).contains(n))))
    val ready = stages.indices.filter(i => stages(i).path("ready").asBoolean && left(i) > 0)
    val granted = Division.divide(v.path("executors").asInt, ready.map { i =>
      Division.Claim(Division.weight(left(i), below(i)), left(i), stages(i).path("held").asInt)
    })
    stages.indices.map(i => ready.indexOf(i)).map(at => if (at < 0) 0 else granted(at))
  }

  private def numbers(list: JsonNode): IndexedSeq[Int] = list.elements().asScala.map(_.asInt).toIndexedSeq
}
